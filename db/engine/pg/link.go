package pg

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
)

// link is a connection that knows whether PostgreSQL may be told to stop what it does for us.
//
// When the context of a call ends, pgx closes the connection and sends a request to cancel the
// statement. That is right for whatever waits for a lock. But a commit that waits for its standby
// must not be cancelled: PostgreSQL then stops waiting and shows everybody a group that a failover
// would take back. Without the request nobody sees the group until the standby has it.
type link struct {
	net.Conn
	*guard
	// since when it waits for an answer, in nanoseconds, see watch.go; 0: the last word is the
	// other side's
	asked atomic.Int64
	pid   atomic.Uint32 // of PostgreSQL's process
	epoch atomic.Uint64 // that it has begun, see engine.Engine; 0: it is not for groups
	gone  func()        // called when it is closed
}

// Write sends a question.
func (l *link) Write(b []byte) (int, error) {
	l.asked.Store(0)
	n, err := l.Conn.Write(b)
	l.asked.Store(time.Now().UnixNano())
	return n, err
}

// Read receives an answer.
func (l *link) Read(b []byte) (int, error) {
	n, err := l.Conn.Read(b)
	if n > 0 {
		l.asked.Store(0)
	}
	return n, err
}

// Close closes the connection.
func (l *link) Close() error {
	l.gone()
	return l.Conn.Close()
}

// guard is what all links have in common that were dialled for one connection of pgx: perhaps to
// several hosts, and for requests to cancel.
type guard struct {
	commits atomic.Bool
	alone   atomic.Bool // a commit was not waited for, see heed

	mu    sync.Mutex
	links []*link
}

var errCommits = errors.New("a commit under way is not cancelled")

// guardCommits gives a connection that is about to be made its guard.
func guardCommits(_ context.Context, c *pgx.ConnConfig) error {
	dial, g := c.DialFunc, &guard{}
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
		l := &link{Conn: conn, guard: g, gone: func() {}}
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
	if l := linkOf(c.Conn().PgConn()); l != nil {
		l.commits.Store(yes)
	}
}

// linkOf returns the link of a connection.
func linkOf(c *pgconn.PgConn) *link {
	conn := c.Conn()
	if t, ok := conn.(*tls.Conn); ok {
		conn = t.NetConn()
	}
	l, _ := conn.(*link)
	return l
}

// since reports whether a connection has been there since an epoch.
func since(c *pgxpool.Conn, epoch uint64) bool {
	l := linkOf(c.Conn().PgConn())
	return l != nil && l.epoch.Load() > 0 && l.epoch.Load() <= epoch
}

var errAlone = errors.New("somebody has told PostgreSQL not to wait for its standby (pg_cancel_backend), which may not have the update")

// heed hears what PostgreSQL says beside its answers. Who cancels a commit that waits for its
// standby ends the wait alone: the answer is that all is well, behind a warning. Its text is
// translated, so it is known by the function that it comes from.
func heed(c *pgconn.PgConn, n *pgconn.Notice) {
	if l := linkOf(c); l != nil && n.Routine == "SyncRepWaitForLSN" {
		l.alone.Store(true)
	}
}

// alone reports whether a connection has had an answer that is worth less than it seems.
func alone(c *pgxpool.Conn) bool {
	l := linkOf(c.Conn().PgConn())
	return l != nil && l.alone.Load()
}
