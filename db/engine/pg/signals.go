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

// sendSQL sends a notification where anybody listens, which the lock tells. Who gets the lock,
// because nobody does, has it until the end of the statement. A notification is no change that must
// last: its commit waits for neither the disk nor the standby.
const sendSQL = `SELECT set_config('synchronous_commit', 'off', true),
	CASE WHEN NOT pg_try_advisory_xact_lock($1, 0) THEN pg_notify('gotycoon', $2) END`

// Send sends a message, as base64: PostgreSQL wants text, of less than 8000 bytes. It uses a
// connection of the readers, since transactions of scripts may have all the others.
func (e signals) Send(ctx context.Context, message string) error {
	if err := engine.CheckSignal(message); err != nil {
		return err
	}
	return e.with(ctx, e.readers, func(c *pgxpool.Conn) error {
		_, err := c.Exec(ctx, sendSQL, classListening, base64.StdEncoding.EncodeToString([]byte(message)))
		return err
	})
}

// Listen hears the messages of all servers, on a connection of its own.
func (e signals) Listen(ctx context.Context, begun func(), heard func(message string)) error {
	within, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(e.ctx, cancel)()
	e.work.Add(1)
	defer e.work.Done()
	err := e.listen(within, begun, heard)
	if ctx.Err() != nil {
		return ctx.Err()
	}
	return mean(err, false)
}

func (e signals) listen(ctx context.Context, begun func(), heard func(message string)) error {
	c, err := pgx.ConnectConfig(ctx, e.config.Copy())
	if err != nil {
		return err
	}
	defer c.Close(context.Background())
	if _, err := c.Exec(ctx, settings, pgx.QueryExecModeSimpleProtocol); err != nil {
		return err
	}
	if _, err := c.Exec(ctx, "LISTEN gotycoon"); err != nil {
		return err
	}
	// until the connection ends; not before we listen: who finds no lock has nobody to tell
	if _, err := c.Exec(ctx, "SELECT pg_advisory_lock_shared($1, 0)", classListening); err != nil {
		return err
	}
	begun()
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
