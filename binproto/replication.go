package binproto

import (
	"gotycoon/access"
	"gotycoon/binproto/frame"
	"gotycoon/internal/netio"
)

// Source feeds followers of the update log.
type Source interface {
	// Serve streams to a follower until the connection is to be closed. It collects in c.Out what the caller then sends. peer is the
	// follower's address.
	Serve(c *netio.Conn, f frame.Follow, peer string)
	// Copying is told that a follower fetches a copy of a database, and returns what is to be called at its end.
	Copying(peer string, r frame.CopyRequest) (end func())
}

// IsFollow tells by its first byte whether a request is one to follow the update log, which keeps the connection for good, or
// to copy a database, which keeps it for long. When the server stops neither is waited for.
func IsFollow(first byte) bool {
	return frame.Magic(first) == frame.Replication || frame.Magic(first) == frame.Copy
}

// serveReplication reads a request to follow the update log and hands the connection to the source, for its whole life. Without
// an update log the answer is Error.
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
