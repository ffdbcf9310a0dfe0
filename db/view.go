package db

import "gotycoon/ulog"

// View is what protocols see of a catalog: the databases of the command line and the update log. The services' database cannot be reached
// through it, by whatever number or name: a client that could write there would clear what sequences, quotas and locks have promised.
//
// What may use the services' database asks the Catalog for it by a name of its own: Services, Numbered and All.
type View struct{ c *Catalog }

// View returns what protocols may see.
func (c *Catalog) View() *View { return &View{c} }

// Len returns the number of databases.
func (v *View) Len() int { return v.c.Len() }

// DB returns the database with an index on the command line, nil where there is none.
func (v *View) DB(i int) *DB { return v.c.DB(i) }

// Lookup returns the database with a name, nil where there is none. Of databases with one name it is the last.
func (v *View) Lookup(name string) *DB { return v.c.Lookup(name) }

// Log returns the shared update log, nil without Options.LogDir.
func (v *View) Log() *ulog.Log { return v.c.Log() }

// LogFiles lists the segments of the shared update log.
func (v *View) LogFiles() ([]ulog.FileInfo, error) { return v.c.LogFiles() }

// RemoveLogFiles removes segments of the shared update log, see Catalog.RemoveLogFiles.
func (v *View) RemoveLogFiles(upTo ulog.Stamp) error { return v.c.RemoveLogFiles(upTo) }

// SetGuarded makes the databases take updates from masters only, or from clients too, see Catalog.SetGuarded.
func (v *View) SetGuarded(on bool) error { return v.c.SetGuarded(on) }

// Guarded reports whether the databases take updates from masters only.
func (v *View) Guarded() bool { return v.c.Guarded() }
