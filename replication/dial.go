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
