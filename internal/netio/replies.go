package netio

import (
	"errors"

	"gotycoon/db/owed"
)

// Replies that other servers do not confirm.
//
// Where answers wait for other servers (-sync-replicas), a reply may turn out to be wrong after it
// has been put into Out: the update is stored here, and is not confirmed in time. Its client must
// be told so in the words of its protocol, and clients of pipelined requests count replies. So each
// door says where a reply ends, and what to send instead (Answered). When the wait fails, Flush
// replaces exactly the replies that owe something, and keeps the others:
//
//	Out      GET a 200 │ PUT b 201 │ GET c 200 │
//	owes                 b
//	sent     GET a 200 │ PUT b 503 │ GET c 200 │
//
// A reply that needs no other server, or that they have confirmed already, is kept, unless this
// server must not acknowledge anything any more: then the connection ends in front of it.
//
// A wait within a request cannot be repaired so: a part of its reply may be gone. The connection
// ends then, behind the replies to the requests before it.
//
// Rejected: waiting for other servers before a reply is put into Out. Pipelined requests would wait
// for a round trip each, instead of one for all.

// Instead appends the reply to a request that is not confirmed, in place of another. It begins as
// every reply of its protocol does, see Heed.
type Instead func(dst []byte, err error) []byte

// replies are the replies of Out that owe something to other servers.
type replies struct {
	owing    []reply
	from     int  // where the reply to the present request begins in Out
	partial  bool // a part of it has been sent
	answered bool // Answered was called for the present request
	confirms int  // Pending.Confirms at the beginning of the present request
	counted  int  // Pending.Confirms at the beginning of Out
}

type reply struct {
	from, to int     // in Out
	debts    int     // of Pending.Confirms
	instead  Instead // nil: the reply needs no confirmation
}

// forget forgets replies that nobody is told about.
func (r *replies) forget() {
	clear(r.owing)
	r.owing = r.owing[:0]
}

// beginRequest notes that a request begins.
func (c *Conn) beginRequest() {
	r := &c.replies
	r.from, r.partial, r.answered, r.confirms = len(c.Out), false, false, c.Owed.Confirms()
	c.Owed.Begin()
}

// end notes that a request has been served.
func (r *replies) end(out, confirms int) {
	if n := confirms - r.confirms; n != 0 && !r.answered && !r.partial {
		r.owing = append(r.owing, reply{from: r.from, to: out, debts: n})
		r.answered = true
	}
}

// Owes reports whether the present request owes something to other servers that they have not
// confirmed yet. Its protocol then calls Answered.
func (c *Conn) Owes() bool { return c.Owed.Waits() }

// Answered says that the present request has been served, and that Out ends with its reply, if it
// has one. If other servers do not confirm what the reply tells, the bytes of instead are sent.
func (c *Conn) Answered(instead Instead) {
	r := &c.replies
	r.answered = true
	if !r.partial {
		r.owing = append(r.owing, reply{r.from, len(c.Out), c.Owed.Confirms() - r.confirms, instead})
	}
}

// Silent reports whether Out has no reply to the present request.
func (c *Conn) Silent() bool { return len(c.Out) == c.replies.from && !c.replies.partial }

// Confirm waits until everything is safe that Out and the present request tell, before the reply to
// this request is in Out. After an error with which other servers have not confirmed it, the
// replies in Out are replaced, and the request can be answered with the error. After any other
// error nothing can be answered.
func (c *Conn) Confirm() (unconfirmed bool, err error) {
	if err := c.Owed.WaitLogs(); err != nil {
		c.Owed.Forget()
		c.drop()
		return false, err
	}
	r := &c.replies
	present := c.Owed.Confirms() - r.confirms
	if err = c.Owed.WaitConfirmed(); err == nil {
		return false, nil
	}
	r.counted += present // the error is the reply
	unnamed := c.answerInstead(err)
	r.from, r.confirms, r.counted = len(c.Out), c.Owed.Confirms(), c.Owed.Confirms()
	r.forget()
	return unnamed == nil && !r.partial, errors.Join(err, unnamed)
}

// drop empties Out.
func (c *Conn) drop() {
	r := &c.replies
	r.partial = r.partial || len(c.Out) > r.from
	c.Out = c.Out[:0]
	r.forget()
	r.from, r.confirms, r.counted = 0, c.Owed.Confirms(), c.Owed.Confirms()
}

// answerInstead replaces the replies that owe something. It returns err if the connection must end
// behind them, because a reply owes something that has not been named with Answered, mostly the
// reply to the request being served. Where that may be any reply, none is left.
func (c *Conn) answerInstead(err error) error {
	r := &c.replies
	if c.Owed.ConfirmsLate() {
		c.Out = c.Out[:0]
		return err
	}
	debts := c.Owed.Confirms() - r.counted
	out, at := make([]byte, 0, len(c.Out)), 0
	unconfirmed, _ := errors.AsType[*owed.Unconfirmed](err)
	for _, p := range r.owing {
		out = append(out, c.Out[at:p.from]...)
		switch {
		case p.instead != nil:
			out = p.instead(out, err)
		case unconfirmed != nil && unconfirmed.All:
			c.Out = out
			return err
		default:
			out = append(out, c.Out[p.from:p.to]...)
		}
		at = p.to
		debts -= p.debts
	}
	if debts != 0 {
		c.Out = out
		return err
	}
	r.from += len(out) - at
	c.Out = append(out, c.Out[at:]...)
	return nil
}
