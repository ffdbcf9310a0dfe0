package replication

import (
	"context"
	"net"
)

// dial connects to a master.
func (f *Follower) dial(ctx context.Context, addr string) (net.Conn, error) {
	if f.opts.Dial == nil {
		dialer := net.Dialer{Timeout: connectTimeout}
		return dialer.DialContext(ctx, "tcp", addr)
	}
	ctx, cancel := context.WithTimeout(ctx, connectTimeout)
	defer cancel()
	return f.opts.Dial(ctx, "tcp", addr)
}

// dialClient is dial as a client has it: questions and copies go the same way as updates.
func (f *Follower) dialClient(ctx context.Context, _, addr string) (net.Conn, error) {
	return f.dial(ctx, addr)
}
