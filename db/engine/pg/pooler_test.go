package pg_test

import (
	"context"
	"net"
	"net/url"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgproto3"
	"github.com/stretchr/testify/require"

	"gotycoon/db/engine/pg"
)

// pooler stands between programs and PostgreSQL as pgbouncer does: it announces a process of its
// own, and gives each transaction, or each session, a connection that it has.
type pooler struct {
	target  string
	session bool
	oldest  bool // the connection that has been idle the longest, and not the one that was used last

	mu   sync.Mutex
	idle []*pgconn.HijackedConn
}

// start returns the URL by which a pooler is used. It has a few connections.
func (p *pooler) start(t *testing.T, target string) string {
	p.target = target
	for range 3 {
		c, err := p.connect(t.Context())
		require.NoError(t, err)
		p.idle = append(p.idle, c)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	var work sync.WaitGroup
	t.Cleanup(func() {
		_ = l.Close()
		work.Wait()
		for _, c := range p.idle {
			_ = c.Conn.Close()
		}
	})
	work.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			work.Go(func() {
				defer c.Close()
				_ = p.serve(c)
			})
		}
	})
	u, err := url.Parse(target)
	require.NoError(t, err)
	u.Host = l.Addr().String()
	return u.String()
}

func (p *pooler) connect(ctx context.Context) (*pgconn.HijackedConn, error) {
	c, err := pgconn.Connect(ctx, p.target)
	if err != nil {
		return nil, err
	}
	return c.Hijack()
}

func (p *pooler) take() (*pgconn.HijackedConn, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.idle) == 0 {
		return p.connect(context.Background())
	}
	i := len(p.idle) - 1
	if p.oldest {
		i = 0
	}
	c := p.idle[i]
	p.idle = append(p.idle[:i:i], p.idle[i+1:]...)
	return c, nil
}

func (p *pooler) give(c *pgconn.HijackedConn) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.idle = append(p.idle, c)
}

// serve passes on what a client and PostgreSQL say.
func (p *pooler) serve(conn net.Conn) error {
	client := pgproto3.NewBackend(conn, conn)
	if _, err := client.ReceiveStartupMessage(); err != nil {
		return err
	}
	for _, m := range []pgproto3.BackendMessage{
		&pgproto3.AuthenticationOk{}, &pgproto3.ParameterStatus{Name: "standard_conforming_strings", Value: "on"},
		&pgproto3.ParameterStatus{Name: "client_encoding", Value: "UTF8"},
		&pgproto3.BackendKeyData{ProcessID: 1 << 30, SecretKey: []byte{1, 2, 3, 4}}, &pgproto3.ReadyForQuery{TxStatus: 'I'},
	} {
		client.Send(m)
	}
	if err := client.Flush(); err != nil {
		return err
	}
	var server *pgconn.HijackedConn
	defer func() {
		if server != nil {
			_ = server.Conn.Close()
		}
	}()
	for {
		m, err := client.Receive()
		if _, ends := m.(*pgproto3.Terminate); err != nil || ends {
			return err
		}
		if server == nil {
			if server, err = p.take(); err != nil {
				return err
			}
		}
		server.Frontend.Send(m)
		switch m.(type) {
		case *pgproto3.Query, *pgproto3.Sync:
		default:
			continue
		}
		idle, err := answer(client, server)
		if err != nil {
			return err
		}
		if idle && !p.session { // before the client can ask again, as pgbouncer does
			p.give(server)
			server = nil
		}
		if err := client.Flush(); err != nil {
			return err
		}
	}
}

// answer passes an answer on, which is still to be flushed, and reports whether no transaction is
// open behind it.
func answer(client *pgproto3.Backend, server *pgconn.HijackedConn) (idle bool, err error) {
	if err := server.Frontend.Flush(); err != nil {
		return false, err
	}
	for {
		m, err := server.Frontend.Receive()
		if err != nil {
			return false, err
		}
		client.Send(m)
		if ready, is := m.(*pgproto3.ReadyForQuery); is {
			return ready.TxStatus == 'I', nil
		}
	}
}

// A pooler that shares its connections is refused by servers and commands, before they have changed
// settings of its connections. One that keeps a connection for a session is not.
func TestPoolers(t *testing.T) {
	target := setUp(t)
	for name, p := range map[string]*pooler{"last used first": {}, "one after the other": {oldest: true}} {
		t.Run(name, func(t *testing.T) {
			through := p.start(t, target)
			for range 3 {
				_, err := pg.Open(t.Context(), through, pg.Options{})
				require.ErrorContains(t, err, "pool_mode=session")
				_, err = pg.ReadStatus(t.Context(), through)
				require.ErrorContains(t, err, "pool_mode=session")
			}
			_, err := pg.Init(t.Context(), through, pg.Setup{SID: 1, Log: true, Databases: []string{"a", "b"}})
			require.ErrorContains(t, err, "pool_mode=session")
			require.ErrorContains(t, pg.Drop(t.Context(), through), "pool_mode=session")
			for range 3 {
				c, err := p.take()
				require.NoError(t, err)
				c.Frontend.Send(&pgproto3.Query{String: "SHOW search_path"})
				require.NoError(t, c.Frontend.Flush())
				for path, done := "", false; !done; {
					m, err := c.Frontend.Receive()
					require.NoError(t, err)
					switch m := m.(type) {
					case *pgproto3.DataRow:
						path = string(m.Values[0])
					case *pgproto3.ReadyForQuery:
						done = true
						require.NotContains(t, path, "gotycoon")
					}
				}
				_ = c.Conn.Close()
			}
		})
	}
	session := &pooler{session: true}
	e := open(t, session.start(t, target), pg.Options{})
	require.NoError(t, e.Close())
	_, err := pg.ReadStatus(t.Context(), target)
	require.NoError(t, err, "nothing was dropped")
}
