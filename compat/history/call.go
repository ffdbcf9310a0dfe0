package history

import (
	"fmt"
	"net"
	"strings"
	"time"
)

// Verb is what a client can ask for.
type Verb int

// The verbs.
const (
	Get Verb = iota
	Set
	Add // only where there is no record
	Remove
	Cas    // from the value Old, "" for none, to a value
	Incr   // a number, from 0 where there is none
	Bump   // a number, only where there is one
	Append // to the value, or a new one
)

// String names the verb.
func (v Verb) String() string {
	return [...]string{"get", "set", "add", "remove", "cas", "increment", "bump", "append"}[v]
}

// Call is a request on one key. Numbers are decimal text here, whatever a protocol makes of them.
type Call struct {
	Verb       Verb
	Key        string
	Value, Old string
	By         int
}

// Certainty says what is known of a request.
type Certainty int

// The certainties.
const (
	Unknown Certainty = iota // it may have been carried out, or be carried out later
	Done
	Refused // nothing has changed
)

// Reply is what a server has answered.
type Reply struct {
	Certainty Certainty
	Value     string // of Get, Incr and Bump
	OK        bool   // a record was found, or the condition was met
}

// Wire is a connection to a server. After a reply that is not Done it is closed by its user.
type Wire interface {
	Ask(c Call) Reply
	Can(v Verb) bool
	Close()
}

// Ports are those of a server.
type Ports struct{ Main, Memcached int }

// Protocol opens connections; limit is how long a request may take.
type Protocol struct {
	Name string
	Dial func(p Ports, limit time.Duration) (Wire, error)
}

// Protocols are all there are.
var Protocols = []Protocol{
	{"rpc", func(p Ports, limit time.Duration) (Wire, error) { return wired(DialHTTP(p.Main, limit)) }},
	{"rest", func(p Ports, limit time.Duration) (Wire, error) {
		w, err := DialHTTP(p.Main, limit)
		if err != nil {
			return nil, err
		}
		w.rest = true
		return w, nil
	}},
	{"binary", dialBinary},
	{"memcached", dialMemcached},
}

func wired(w *HTTP, err error) (Wire, error) {
	if err != nil {
		return nil, err
	}
	return w, nil
}

// nothing are the texts by which servers say that they have changed nothing.
var nothing = []string{
	"permission denied", "server is read-only", "nothing has changed", "nothing was changed", "no space: ", "too many operations wait for the engine",
}

// failed returns the reply to a request that has come to an error.
func failed(text string) Reply {
	for _, n := range nothing {
		if strings.Contains(text, n) {
			return Reply{Certainty: Refused}
		}
	}
	return Reply{}
}

// DialLimit is how long opening a connection may take.
const DialLimit = 500 * time.Millisecond

// Dial opens a connection on this machine.
func Dial(port int) (net.Conn, error) {
	c, err := net.DialTimeout("tcp4", fmt.Sprintf("127.0.0.1:%d", port), DialLimit)
	if err == nil {
		// The end of a connection that is closed with data under way must not wait for a paused
		// server.
		_ = c.(*net.TCPConn).SetLinger(0)
	}
	return c, err
}
