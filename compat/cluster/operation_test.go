package cluster

import (
	"fmt"
	"net"
	"strings"
	"time"
)

// verb is what a client can ask for.
type verb int

const (
	get verb = iota
	set
	remove
	cas  // from the value old, "" for none, to a value
	incr // a number, from 0 where there is none
	bump // a number, only where there is one
)

func (v verb) String() string {
	return [...]string{"get", "set", "remove", "cas", "incr", "bump"}[v]
}

// call is a request on one key. Numbers are decimal text here, whatever a protocol makes of them.
type call struct {
	verb       verb
	key        string
	value, old string
	by         int
}

// certainty says what is known of a request.
type certainty int

const (
	unknown certainty = iota // it may have been carried out, or be carried out later
	done
	refused // nothing has changed
)

// reply is what a server has answered.
type reply struct {
	certainty certainty
	value     string // of get, incr and bump
	ok        bool   // a record was found, or the condition of cas was met
}

var doubtful = reply{}

// wire is a connection to a server. After a reply that is not done it is closed by its user.
type wire interface {
	ask(c call) reply
	can(v verb) bool
	close()
}

// nothing are the texts by which servers say that they have changed nothing.
var nothing = []string{"permission denied", "nothing has changed", "server is read-only", "no space: "}

// failed returns the reply to a request that has come to an error.
func failed(text string) reply {
	for _, n := range nothing {
		if strings.Contains(text, n) {
			return reply{certainty: refused}
		}
	}
	return doubtful
}

const (
	dialLimit = 500 * time.Millisecond
	askLimit  = time.Second
	// waitLimit is for clients that are still there when a paused server goes on.
	waitLimit = 8 * time.Second
)

// protocol opens connections to a member.
type protocol struct {
	name string
	dial func(m *member, limit time.Duration) (wire, error)
}

var protocols = []protocol{
	{"rpc", func(m *member, limit time.Duration) (wire, error) { return dialHTTP(m, limit, false) }},
	{"rest", func(m *member, limit time.Duration) (wire, error) { return dialHTTP(m, limit, true) }},
	{"binary", dialBinary},
	{"memcached", dialMemcached},
}

func dial(port int) (net.Conn, error) {
	c, err := net.DialTimeout("tcp4", fmt.Sprintf("127.0.0.1:%d", port), dialLimit)
	if err == nil {
		// The end of a connection that is closed with data under way must not wait for a paused server.
		_ = c.(*net.TCPConn).SetLinger(0)
	}
	return c, err
}
