package access

import (
	"bytes"
	"fmt"
	"net/http"
	"net/netip"
	"slices"
	"strconv"
	"strings"
)

// Rights is a set of things that a rule allows.
type Rights uint8

// The rights. No bit includes another; parseRights sets all bits for the word admin in a file.
const (
	Read      Rights = 1 << iota // see records
	Write                        // change records
	Replicate                    // follow the update log, copy databases
	Admin                        // remove files of the log, run commands, choose a master
)

const allRights = Read | Write | Replicate | Admin

// rightNames are the words of the file, in the order of the bits.
var rightNames = [...]string{"read", "write", "replicate", "admin"}

// String returns the words of the file.
func (r Rights) String() string {
	var words []string
	for i, name := range rightNames {
		if r&(1<<i) != 0 {
			words = append(words, name)
		}
	}
	return strings.Join(words, ",")
}

func parseRights(text string) (r Rights, err error) {
	for word := range strings.SplitSeq(text, ",") {
		i := slices.Index(rightNames[:], word)
		if i < 0 {
			return 0, fmt.Errorf("%q is no right: they are %s", word, strings.Join(rightNames[:], ", "))
		}
		r |= 1 << i
	}
	if r&Admin != 0 {
		r = allRights
	}
	return r, nil
}

// Services are the names that service= takes.
const (
	Counter  = "counter"
	Lock     = "lock"
	Sequence = "sequence"
	Quota    = "quota"
)

// Database is a database that rules can name.
type Database interface {
	Index() int
	Name() string
}

// ServicesDatabase is the services' database (sequences, quotas, bounds of fencing tokens), as
// rules name it. Clients can only copy it.
type ServicesDatabase struct{}

const servicesNumber = "65534"

// Index implements Database.
func (ServicesDatabase) Index() int { return 65534 }

// Name implements Database.
func (ServicesDatabase) Name() string { return servicesNumber }

// rule is one line that begins with allow.
type rule struct {
	rights Rights
	from   []netip.Prefix // nil: from everywhere, unless local is set
	local  bool           // from this machine

	databases    []string // names and numbers
	allDatabases bool
	prefix       []byte
	services     []string
	allServices  bool
}

// target is what a request wants to use.
type target struct {
	kind    targetKind
	db      Database // of aKey, aDatabase
	key     []byte   // of aKey
	service string   // of aService
}

type targetKind byte

const (
	anything targetKind = iota
	aKey
	aDatabase
	theServer // all databases, and what belongs to no database
	aService
)

// coveredBy reports whether a rule applies to the target.
func (t *target) coveredBy(r *rule) bool {
	switch t.kind {
	case aKey:
		return r.coversDatabase(t.db) && bytes.HasPrefix(t.key, r.prefix)
	case aDatabase:
		return r.coversDatabase(t.db) && len(r.prefix) == 0
	case theServer:
		return r.allDatabases && len(r.prefix) == 0
	case aService:
		return r.allServices || slices.Contains(r.services, t.service)
	}
	return true
}

// String names the target without showing its key.
func (t target) String() string {
	switch t.kind {
	case aKey:
		return fmt.Sprintf("this key of database %d (%s)", t.db.Index(), t.db.Name())
	case aDatabase:
		return fmt.Sprintf("the whole database %d (%s)", t.db.Index(), t.db.Name())
	case theServer:
		return "the whole server"
	case aService:
		return "the service " + t.service
	}
	return "anything"
}

func (r *rule) coversDatabase(d Database) bool {
	return r.allDatabases || len(r.databases) > 0 &&
		(slices.Contains(r.databases, d.Name()) || slices.Contains(r.databases, strconv.Itoa(d.Index())))
}

// holdsFrom reports whether the rule applies to a peer at its address.
func (r *rule) holdsFrom(p peer, isHere func(peer) bool) bool {
	if len(r.from) == 0 && !r.local {
		return true
	}
	for _, network := range r.from {
		if network.Contains(p.addr) {
			return true
		}
	}
	return r.local && isHere(p)
}

// unknown returns the names in db= that no database has, sorted.
func (t *table) unknown(have []Database) []string {
	var names []string
	look := func(rules []rule) {
		for _, r := range rules {
			for _, name := range r.databases {
				one := rule{databases: []string{name}}
				if name != "*" && !slices.ContainsFunc(have, one.coversDatabase) {
					names = append(names, name)
				}
			}
		}
	}
	look(t.anyone)
	for _, p := range t.names {
		look(p.rules)
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// Denied is the error of a request that is refused. Its text may be shown to the client.
type Denied struct {
	// Reason says why in words, without secrets.
	Reason string

	// Remote: the server is protected by default and the peer is on another machine. No request of
	// its connection will be answered.
	Remote bool

	// Unknown: the peer has sent no credentials, or wrong ones. With other credentials the request
	// may be allowed.
	Unknown bool
}

// Prefix begins the text of every Denied.
const Prefix = "access denied: "

// Error returns Prefix and the reason.
func (d *Denied) Error() string { return Prefix + d.Reason }

// Status is the HTTP status: 401 for Unknown, else 403.
func (d *Denied) Status() int {
	if d.Unknown {
		return http.StatusUnauthorized
	}
	return http.StatusForbidden
}

// Challenge is the value of WWW-Authenticate in an HTTP reply with status 401.
const Challenge = `Basic realm="gotycoon", charset="UTF-8"`

// OpenHint says how to open a protected server to other machines.
const OpenHint = "this server answers only clients on its own machine; " +
	"start it with -access FILE to say who may do what, or with -host 0.0.0.0 to let everybody in"

// errRemote is the error of a protected server for peers on other machines.
var errRemote = &Denied{Reason: OpenHint, Remote: true}
