package ulog

import "slices"

// # Names of databases
//
// An update names its database by number, which is the database's place on the command line. So
// when somebody starts the server with another order of databases, older updates in the log seem to
// be those of another database. Followers, and whoever recovers a database from the log, go by the
// numbers and take the order that they are told, as with the original. Clients that are told of
// changes have rights by the names of databases: they must not be shown what was the update of
// another name.
//
// The file gotycoon.names in the log's directory has for each number the name, and the stamp up to
// which the number had another name. The file is on the disk before a number with a new name gets
// its first update. Numbers that are not used now keep their rows: they may come back with another
// name. Of what is older than the file itself nobody knows which names the numbers had.

const namesName = "gotycoon.names"

// names is the content of the file.
type names struct {
	Since     Stamp   `json:"since,string"` // the end of the log when the file was made; 0: there was no update
	Databases []named `json:"databases"`
}

type named struct {
	Number uint16 `json:"number"`
	Name   string `json:"name"`
	Since  Stamp  `json:"since,string"` // updates up to here may be those of another database
}

// Renamed is a database whose number had another name.
type Renamed struct {
	Number       uint16
	Before, Name string
	Moved        bool // one of the names is, or was, that of another number: the order has changed
}

// name says which names the numbers from 0 on have from now on, where the log ends at a stamp, and
// returns those that had other names.
func (n *names) name(all []string, end Stamp) (changed []Renamed) {
	for i, name := range all {
		at := slices.IndexFunc(n.Databases, func(r named) bool { return int(r.Number) == i })
		switch {
		case at < 0:
			n.Databases = append(n.Databases, named{uint16(i), name, n.Since})
		case n.Databases[at].Name != name:
			before := n.Databases[at].Name
			moved := slices.Contains(all, before) || slices.ContainsFunc(n.Databases, func(r named) bool { return r.Name == name })
			changed = append(changed, Renamed{uint16(i), before, name, moved})
			n.Databases[at] = named{uint16(i), name, end}
		}
	}
	return changed
}
