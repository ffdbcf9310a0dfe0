package binproto

import (
	"gotycoon/access"
	"gotycoon/binproto/frame"
	"gotycoon/internal/netio"
)

// Source feeds followers of the update log.
type Source interface {
	// Serve streams updates to a follower until the connection is to be closed. Then the caller
	// sends the rest of c.Out. peer is the follower's address.
	Serve(c *netio.Conn, f frame.Follow, peer string)
	// Copying is called when a follower begins to fetch a copy of a database. The caller calls end
	// when the copy ends.
	Copying(peer string, r frame.CopyRequest) (end func())
}

// IsFollow reports whether a request, by its first byte, follows the update log or copies a
// database. Such a request lasts very long, and the server does not wait for it when it stops.
func IsFollow(first byte) bool {
	return frame.Magic(first) == frame.Replication || frame.Magic(first) == frame.Copy
}

// serveReplication reads a request to follow the update log, and hands the connection to the source
// until its end. Without an update log the answer is Error.
func (h *Handler) serveReplication(c *netio.Conn, peer string) (keep bool) {
	var follow frame.Follow
	if next(c, frame.DecodeFollow, &follow) != nil {
		return false
	}
	if h.opts.Source == nil {
		h.opts.Logger.Info("no update log allows no replication")
		c.Out = append(c.Out, byte(frame.Error))
		return false
	}
	defer c.Visitor.While(access.Replicate, nil, c.Cut)()
	h.opts.Source.Serve(c, follow, peer)
	return false
}
