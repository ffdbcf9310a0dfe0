package binproto

import (
	"gotycoon/binproto/frame"
	"gotycoon/internal/netio"
)

// servePlayScript reads a request to call a procedure. There are none, so the answer is Error, after which the
// connection is good for more. A request that cannot be read to its end is not answered.
func (h *Handler) servePlayScript(c *netio.Conn) (keep bool) {
	var script frame.Script
	var pair frame.Pair
	if next(c, frame.DecodeScript, &script) != nil {
		return false
	}
	for range script.RNum {
		if next(c, frame.DecodePair, &pair) != nil {
			return false
		}
	}
	if script.Flags&frame.NoReply == 0 {
		c.Out = append(c.Out, byte(frame.Error))
	}
	return true
}
