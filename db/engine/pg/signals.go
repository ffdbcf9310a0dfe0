package pg

import (
	"context"
	"encoding/base64"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"gotycoon/db/engine"
)

type signals struct{ *Engine }

// Signals returns the signals. They are notifications of PostgreSQL, in statements of their own: a
// commit with a notification takes a lock of the whole server, which groups must not.
func (e *Engine) Signals() engine.Signals { return signals{e} }

// longestSignal is what PostgreSQL takes in base64: it wants text, and a message may be any bytes.
const longestSignal = 5900

// Send sends a message.
func (e signals) Send(ctx context.Context, message string) error {
	if len(message) > longestSignal {
		return engine.Refuse("the engine carries signals of at most 5900 bytes")
	}
	return e.with(ctx, e.others, func(c *pgxpool.Conn) error {
		_, err := c.Exec(ctx, "SELECT pg_notify('gotycoon', $1)", base64.StdEncoding.EncodeToString([]byte(message)))
		return err
	})
}

// Listen hears the messages of all servers, on a connection of its own.
func (e signals) Listen(ctx context.Context, heard func(message string)) error {
	within, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(e.ctx, cancel)()
	e.work.Add(1)
	defer e.work.Done()
	err := e.listen(within, heard)
	if ctx.Err() != nil {
		return ctx.Err()
	}
	return mean(err, false)
}

func (e signals) listen(ctx context.Context, heard func(message string)) error {
	c, err := pgx.ConnectConfig(ctx, e.config.Copy())
	if err != nil {
		return err
	}
	defer c.Close(context.Background())
	if _, err := c.Exec(ctx, "LISTEN gotycoon"); err != nil {
		return err
	}
	for {
		n, err := c.WaitForNotification(ctx)
		if err != nil {
			return err
		}
		if message, err := base64.StdEncoding.DecodeString(n.Payload); err == nil { // else it is not ours
			heard(string(message))
		}
	}
}
