package client

import (
	"context"
	"strconv"
	"time"

	"gotycoon/httpapi/tsv"
)

// Signals let a call wait for a named signal before it is carried out, and send one afterwards.
type Signals struct {
	Wait      string        // name of the signal to wait for
	Waits     bool          // wait, even if the name is empty
	WaitTime  time.Duration // limit of the wait, then ErrTimeout; 0 means the server's 30 s
	Send      string        // name of the signal to send
	Sends     bool          // send, even if the name is empty
	Broadcast bool          // wake all waiting calls, not only one
}

func (s Signals) append(rows []tsv.Row) []tsv.Row {
	if s.Waits || s.Wait != "" {
		rows = appendRow(rows, "WAIT", s.Wait)
		if s.WaitTime > 0 {
			rows = appendRow(rows, "WAITTIME", formatFloat(s.WaitTime.Seconds()))
		}
	}
	if s.Sends || s.Send != "" {
		rows = appendRow(rows, "SIGNAL", s.Send)
		if s.Broadcast {
			rows = appendRow(rows, "SIGNALBROAD", "")
		}
	}
	return rows
}

// Wait waits until somebody sends the signal, at most for limit, and returns ErrTimeout then. A
// limit of 0 means 30 s. Signals are not remembered: one that was sent before Wait does not count.
func (c *Client) Wait(ctx context.Context, name string, limit time.Duration) error {
	_, err := c.DB("").With(Signals{Wait: name, Waits: true, WaitTime: limit}).Call(ctx, "void")
	return err
}

// Signal wakes one call that waits for the signal, or with all every such call. It returns how many
// calls were waiting.
func (c *Client) Signal(ctx context.Context, name string, all bool) (waiting int, err error) {
	out, err := c.DB("").With(Signals{Send: name, Sends: true, Broadcast: all}).Call(ctx, "void")
	if err != nil {
		return 0, err
	}
	return strconv.Atoi(string(out["SIGNALED"]))
}
