package binproto

import (
	"bytes"
	"encoding/binary"
	"errors"
	"iter"

	"gotycoon/access"
	"gotycoon/client/wire/frame"
	"gotycoon/db"
	"gotycoon/internal/netio"
)

// Scripts calls the procedures of the server's script. Call returns 0 for success; it has passed
// the output to out then, in the order of the keys. Updates of the procedure are added to owed. An
// error of heed ends the call.
type Scripts interface {
	Call(heed db.Heed, owed *db.Pending, name string, in iter.Seq2[[]byte, []byte], out func(key, value []byte)) (status int)
}

// servePlayScript calls a procedure. A failure of the procedure is answered with Error, and the
// connection can be used further. If the request does not arrive as a whole, there is no answer.
func (h *Handler) servePlayScript(c *netio.Conn) (keep bool) {
	var script frame.Script
	if next(c, frame.DecodeScript, &script) != nil {
		return false
	}
	name, _, _ := bytes.Cut(script.Name, []byte{0})
	procedure := string(name) // next overwrites the name
	var input []frame.Pair
	size := 0
	for range script.RNum {
		var pair frame.Pair
		err := next(c, frame.DecodePair, &pair)
		if err == nil {
			err = c.Hold(pairOverhead + len(pair.Key) + len(pair.Value))
		}
		if size += len(pair.Key) + len(pair.Value); err != nil || size > maxScriptInput {
			return h.refuse(c, script.Flags, err)
		}
		input = append(input, frame.Pair{Key: bytes.Clone(pair.Key), Value: bytes.Clone(pair.Value)})
	}
	if !h.admit(c, frame.PlayScript) { // again, since the input may have taken long to arrive
		return false
	}
	c.Owed.Replicas = frame.ReplicasOf(script.Flags)
	var reply []byte
	ok := h.followers(c) == nil
	if ok {
		reply, ok = h.playScript(c, procedure, input)
	}
	if ok && script.Flags&frame.NoReply == 0 && !clearFor(c, reply) {
		return false
	}
	switch {
	case script.Flags&frame.NoReply != 0:
	case !ok:
		c.Out = append(c.Out, byte(frame.Error))
	case len(c.Out) == 0 && len(reply) > keepReply:
		c.Out = reply
	default:
		c.Out = append(c.Out, reply...)
	}
	return true
}

// refuse ends the connection of a request that was not read to its end. For lack of memory the
// answer is Error; if the request did not arrive, there is no answer.
func (h *Handler) refuse(c *netio.Conn, flags uint32, err error) (keep bool) {
	if flags&frame.NoReply == 0 && (errors.Is(err, netio.ErrBusy) || errors.Is(err, netio.ErrTooLarge)) {
		c.Out = append(c.Out, byte(frame.Error))
	}
	return false
}

const (
	maxScriptInput = 600 << 20 // bytes of the input of a procedure, as of any request
	pairOverhead   = 160       // memory of a pair beside its bytes
)

// playScript calls the procedure and returns the reply. ok is false if the call has failed.
func (h *Handler) playScript(c *netio.Conn, name string, input []frame.Pair) (reply []byte, ok bool) {
	if h.opts.Scripts == nil {
		return nil, false
	}
	h.opts.Counts.Script.Add(1)
	out := frame.AppendReply(nil, frame.PlayScript, 0)
	var lack error
	n, held := uint32(0), 0
	in := func(yield func(key, value []byte) bool) {
		for _, pair := range input {
			if !yield(pair.Key, pair.Value) {
				return
			}
		}
	}
	who := &caller{h: h, c: c}
	c.Owed.Rights = who
	defer func() { c.Owed.Rights, c.Owed.Replicas = nil, 0 }()
	status := h.opts.Scripts.Call(who.heed(c.Heed("")), &c.Owed, name, in, func(key, value []byte) {
		if lack == nil {
			head := frame.AppendPair(nil, frame.Pair{Key: key})
			binary.BigEndian.PutUint32(head[4:], uint32(len(value)))
			out, lack = c.Append(out, &held, head, value)
		}
		n++
	})
	if lack != nil || !who.Current() && who.Renew() != nil { // checked before the output leaves
		return nil, false
	}
	binary.BigEndian.PutUint32(out[1:], n)
	return out, status == 0
}

// scriptRights are the rights that the client of a script needs, since a script may read and change
// everything.
const scriptRights = access.Read | access.Write

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
