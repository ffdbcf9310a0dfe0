package pg

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"sync"
	"sync/atomic"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"gotycoon/db/engine"
)

// link is a connection that knows whether PostgreSQL may be told to stop what it does for us, and
// whether what PostgreSQL has acknowledged is safe.
//
// When the context of a call ends, pgx closes the connection and sends a request to cancel the
// statement. That is right for whatever waits for a lock. But a commit that waits for its standby
// must not be cancelled: PostgreSQL then stops waiting and shows everybody a group that a failover
// would take back. Without the request nobody sees the group until the standby has it.
//
// An administrator can cancel such a commit all the same. PostgreSQL then acknowledges it with a
// warning, and Settle must find out when the standby has the group.
type link struct {
	net.Conn
	*guard
}

// guard is what all links have in common that were dialled for one connection of pgx: perhaps to
// several hosts, and for requests to cancel.
type guard struct {
	commits atomic.Bool
	warned  atomic.Bool // a statement of this connection has got a warning

	mu    sync.Mutex
	links []*link
}

var errCommits = errors.New("a commit under way is not cancelled")

// guardCommits gives a connection that is about to be made its guard.
func guardCommits(_ context.Context, c *pgx.ConnConfig) error {
	dial, g := c.DialFunc, &guard{}
	// Its text depends on the language of PostgreSQL, and its code is that of most warnings. No
	// statement of ours gets another one.
	c.OnNotice = func(_ *pgconn.PgConn, n *pgconn.Notice) {
		if n.SeverityUnlocalized == "WARNING" {
			g.warned.Store(true)
		}
	}
	c.DialFunc = func(ctx context.Context, network, addr string) (net.Conn, error) {
		if g.commits.Load() {
			g.close() // at once: pgx would wait for an answer
			return nil, errCommits
		}
		conn, err := dial(ctx, network, addr)
		if err != nil {
			return nil, err
		}
		g.mu.Lock()
		defer g.mu.Unlock()
		l := &link{conn, g}
		g.links = append(g.links, l)
		return l, nil
	}
	return nil
}

func (g *guard) close() {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, l := range g.links {
		_ = l.Conn.Close()
	}
}

// committing says whether a statement that changes something is under way. After one that has
// failed it stays true: the connection is closed.
func committing(c *pgxpool.Conn, yes bool) {
	if g := guardOf(c.Conn()); g != nil {
		g.commits.Store(yes)
	}
}

// errWarned is for what PostgreSQL has acknowledged with a warning.
var errWarned = errors.New("an administrator has cancelled a commit that waited for the standby, which may not have it yet")

// warned returns an error for a connection whose statement got a warning.
func warned(c *pgx.Conn, changes bool) error {
	if g := guardOf(c); g == nil || !g.warned.Load() {
		return nil
	}
	if changes {
		return &engine.Error{Kind: engine.Unknown, Err: errWarned}
	}
	return &engine.Error{Kind: engine.Undone, Err: errWarned}
}

// guardOf returns the guard of a connection, nil for one that was made without.
func guardOf(c *pgx.Conn) *guard {
	conn := c.PgConn().Conn()
	if t, ok := conn.(*tls.Conn); ok {
		conn = t.NetConn()
	}
	if l, ok := conn.(*link); ok {
		return l.guard
	}
	return nil
}
