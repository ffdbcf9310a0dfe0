package binproto

import (
	"bytes"
	"encoding/binary"
	"errors"
	"iter"

	"gotycoon/binproto/frame"
	"gotycoon/db"
	"gotycoon/internal/netio"
)

// Scripts calls the procedures of the server's script. Call returns 0 for success, and then has given the output to out, in the order
// of the keys. Its updates are added to owed. An error of heed ends the call.
type Scripts interface {
	Call(heed db.Heed, owed *db.Pending, name string, in iter.Seq2[[]byte, []byte], out func(key, value []byte)) (status int)
}

// servePlayScript calls a procedure. Whatever goes wrong in it is answered with Error, after which the connection is good for more. A
// request that cannot be read to its end is not answered.
func (h *Handler) servePlayScript(c *netio.Conn) (keep bool) {
	var script frame.Script
	if next(c, frame.DecodeScript, &script) != nil {
		return false
	}
	name, _, _ := bytes.Cut(script.Name, []byte{0})
	procedure := string(name) // the buffer moves on
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
	if !h.admit(c, frame.PlayScript) { // again: the input may have taken long to come
		return false
	}
	reply, ok := h.playScript(c, procedure, input)
	switch {
	case script.Flags&frame.NoReply != 0:
	case !ok:
		c.Out = append(c.Out, byte(frame.Error))
	default:
		c.Out = append(c.Out, reply...)
	}
	return true
}

// refuse answers a request for which there is no memory with Error, and ends the connection. For one that does not come there is no answer.
func (h *Handler) refuse(c *netio.Conn, flags uint32, err error) (keep bool) {
	if flags&frame.NoReply == 0 && (errors.Is(err, netio.ErrBusy) || errors.Is(err, netio.ErrTooLarge)) {
		c.Out = append(c.Out, byte(frame.Error))
	}
	return false
}

const (
	maxScriptInput = 600 << 20 // bytes of the input of a procedure, as of any request
	pairOverhead   = 160       // what keeping a pair takes beside its bytes
)

// playScript calls the procedure and returns the reply.
func (h *Handler) playScript(c *netio.Conn, name string, input []frame.Pair) (reply []byte, ok bool) {
	if h.opts.Scripts == nil {
		return nil, false
	}
	h.opts.Counts.Script.Add(1)
	var pairs []byte
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
	defer func() { c.Owed.Rights = nil }()
	status := h.opts.Scripts.Call(who.heed(c.Heed("")), &c.Owed, name, in, func(key, value []byte) {
		if lack == nil {
			head := frame.AppendPair(nil, frame.Pair{Key: key})
			binary.BigEndian.PutUint32(head[4:], uint32(len(value)))
			pairs, lack = c.Append(pairs, &held, head, value)
		}
		n++
	})
	if lack != nil || !who.Current() && who.Renew() != nil { // before the output is told
		return nil, false
	}
	return append(frame.AppendReply(nil, frame.PlayScript, n), pairs...), status == 0
}
