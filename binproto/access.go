package binproto

import (
	"gotycoon/access"
	"gotycoon/binproto/frame"
	"gotycoon/db"
	"gotycoon/internal/netio"
)

// The protocol has no credentials: rules apply by the client's address and its certificate.

// admit reports whether a client may begin a request of this kind. The answer to a refused request
// is Error, and its connection ends. A refused copy gets the reason, because the protocol of copies
// has a message for it.
func (h *Handler) admit(c *netio.Conn, magic frame.Magic) bool {
	c.Visitor.Anonymous() // HTTP requests on this connection may have had credentials
	var err error
	switch magic {
	case frame.PlayScript:
		err = c.Visitor.Server(scriptRights)
	case frame.Replication:
		err = c.Visitor.Server(access.Replicate)
	default:
		err = c.Visitor.Enter()
	}
	if err == nil {
		return true
	}
	c.Out = append(c.Out, byte(frame.Error))
	if magic == frame.Copy {
		c.Out = frame.AppendCopyPart(c.Out[:len(c.Out)-1], frame.CopyPart{Kind: frame.CopyFailed, Text: []byte(err.Error())})
	}
	h.tell(err)
	return false
}

// tell logs the reason of a refusal, which the client is not told.
func (h *Handler) tell(err error) { h.opts.Logger.Info(err.Error()) }

// Current implements owed.Rights.
func (b *bulk) Current() bool { return b.c.Visitor.Current() }

// Renew implements owed.Rights.
func (b *bulk) Renew() error {
	err := b.c.Visitor.Enter()
	if err == nil {
		err = b.permit()
	}
	return err
}

// caller is the client of a script in its role as owed.Rights. The script has the rights of its
// client.
type caller struct {
	h      *Handler
	c      *netio.Conn
	denied error // once refused, until the end of the call
}

// Current implements owed.Rights.
func (o *caller) Current() bool { return o.denied == nil && o.c.Visitor.Current() }

// Renew implements owed.Rights.
func (o *caller) Renew() error {
	if o.denied == nil {
		if o.denied = o.c.Visitor.Server(scriptRights); o.denied != nil {
			o.h.tell(o.denied)
		}
	}
	return o.denied
}

// heed returns gone with a further test: the client may have lost its rights.
func (o *caller) heed(gone db.Heed) db.Heed {
	return func() error {
		if err := gone(); err != nil || o.Current() {
			return err
		}
		return o.Renew()
	}
}

// scriptRights are the rights that the client of a script needs, since a script may read and change
// everything.
const scriptRights = access.Read | access.Write

// permit returns nil if the client may use the records of the run as the request wants.
func (b *bulk) permit() error {
	v := b.c.Visitor
	if v == nil || b.db == nil {
		return nil
	}
	need := access.Write
	if b.head.Magic == frame.GetBulk {
		need = access.Read
	}
	err := error(nil)
	for i := 0; i < len(b.recs) && err == nil; i++ {
		err = v.Key(need, b.db, b.recs[i].Key)
	}
	for i := 0; i < len(b.keys) && err == nil; i++ {
		err = v.Key(need, b.db, b.keys[i])
	}
	if err != nil {
		b.h.tell(err)
	}
	return err
}
