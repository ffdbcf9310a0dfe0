// Package binproto serves the requests of the binary protocol: set_bulk, remove_bulk, get_bulk,
// play_script, replication, which it hands to a Source, and copy, which only gotycoon has. Package
// frame has their byte layouts.
package binproto

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"log/slog"
	"sync"

	"gotycoon/access"
	"gotycoon/client/wire/frame"
	"gotycoon/db"
	"gotycoon/db/dberr"
	"gotycoon/internal/metrics"
	"gotycoon/internal/netio"
	"gotycoon/internal/opcount"
)

// Options of a Handler.
type Options struct {
	Catalog  *db.View
	Services *db.DB          // can only be copied, by its number; nil: there is none
	Counts   *opcount.Counts // nil: nothing is counted
	Scripts  Scripts         // nil: the server has no script
	Source   Source          // nil: there is no update log to follow
	Shared   bool            // the databases are in an engine that several servers share: there are no followers to wait for
	NoData   string          // why there are no records, and every request for them is refused; empty: there are
	Forward  *netio.Forward  // moves updates to the primary; nil: this server serves them
	Meters   Meters          // count the requests; the zero value: nothing is counted
	Logger   *slog.Logger    // nil: silent. Info has a line for each request, Error database errors
}

func (o *Options) setDefaults() {
	if o.Counts == nil {
		o.Counts = new(opcount.Counts)
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
}

// Source feeds followers of the update log.
type Source interface {
	// Serve streams updates to a follower until the connection is to be closed. Then the caller
	// sends the rest of c.Out. peer is the follower's address.
	Serve(c *netio.Conn, f frame.Follow, peer string)
	// Copying is called when a follower begins to fetch a copy of a database. The caller calls end
	// when the copy ends.
	Copying(peer string, r frame.CopyRequest) (end func())
}

// Handler serves requests to the databases of one server. It may be used by many goroutines.
type Handler struct {
	opts  Options
	bulks sync.Pool // of *bulk
}

// NewHandler returns a handler for the databases of o.Catalog.
func NewHandler(o Options) *Handler {
	o.setDefaults()
	return &Handler{opts: o}
}

// ServeOne answers the request that begins with the first buffered byte; the caller makes sure that
// there is one. keep reports whether the connection can be used for further requests. If not, the
// caller sends c.Out and closes the connection. peer is the client's address for the log, IP:PORT.
func (h *Handler) ServeOne(c *netio.Conn, peer string) (keep bool) {
	magic := frame.Magic(c.Buffered()[0])
	if c.Visitor != nil && !h.admit(c, magic) {
		h.logRequest(peer, magic, false)
		return false
	}
	if h.opts.NoData != "" && magic != frame.Replication {
		h.tell(errors.New(h.opts.NoData))
		c.Out = refusal(c.Out, magic, h.opts.NoData)
		h.logRequest(peer, magic, false)
		return false
	}
	if h.opts.Forward != nil && updates(magic) && h.opts.Forward.Away() && h.move(c) {
		h.logRequest(peer, magic, false)
		return false
	}
	h.longRequest(c, magic)
	var detail metrics.Detail
	switch magic {
	case frame.SetBulk, frame.RemoveBulk, frame.GetBulk:
		keep, detail = h.serveBulk(c)
	case frame.PlayScript:
		keep = h.servePlayScript(c)
	case frame.Replication:
		keep = h.serveReplication(c, peer)
	case frame.Copy:
		keep = h.serveCopy(c, peer)
	}
	if c.Owes() {
		c.Answered(unconfirmed(c.Silent()))
	}
	h.logRequest(peer, magic, keep)
	h.measure(c, magic, keep, detail)
	return keep
}

// unconfirmed returns what is sent instead of a reply when other servers do not confirm what the
// reply tells: the protocol has one error, and requests that want no reply.
func unconfirmed(silent bool) netio.Instead {
	return func(dst []byte, _ error) []byte {
		if silent {
			return dst
		}
		return append(dst, byte(frame.Error))
	}
}

// next waits for the part of a request that decode reads, and takes it from the buffer. Slices in
// the part are valid until the following next.
func next[T any](c *netio.Conn, decode func([]byte) (T, int, error), part *T) error {
	for {
		v, n, err := decode(c.Buffered())
		if err == nil {
			*part = v
			c.Advance(n)
			return nil
		}
		if !errors.Is(err, frame.ErrShort) {
			return err
		}
		if err := c.Need(n); err != nil {
			return err
		}
	}
}

// admit reports whether a client may begin a request of this kind. The protocol has no credentials:
// rules apply by the client's address and its certificate. The answer to a refused request
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
	c.Out = refusal(c.Out, magic, err.Error())
	h.tell(err)
	return false
}

// refusal appends the answer to a request that is refused as such.
func refusal(dst []byte, magic frame.Magic, reason string) []byte {
	if magic == frame.Copy {
		return frame.AppendCopyPart(dst, frame.CopyPart{Kind: frame.CopyFailed, Text: []byte(reason)})
	}
	return append(dst, byte(frame.Error))
}

// updates reports whether a request changes records.
func updates(magic frame.Magic) bool {
	return magic == frame.SetBulk || magic == frame.RemoveBulk || magic == frame.PlayScript
}

// move moves the connection, whose request is in the buffer, to the primary, if the rules of this
// server let the client change anything. It reports false if the request is to be served here after
// all.
func (h *Handler) move(c *netio.Conn) (over bool) {
	err := c.Visitor.Some(access.Write)
	if err == nil {
		over, err = h.opts.Forward.Move(c, frame.MemberData, nil)
		if !over {
			return false
		}
	}
	const flagged = 5 // bytes up to the flags, which stand in the same place in all of these requests
	if err != nil && c.Need(flagged) == nil && binary.BigEndian.Uint32(c.Buffered()[1:])&frame.NoReply == 0 {
		c.Out = append(c.Out, byte(frame.Error))
	}
	if err != nil {
		h.tell(err)
	}
	return true
}

// tell logs the reason of a refusal, which the client is not told.
func (h *Handler) tell(err error) { h.opts.Logger.Info(err.Error()) }

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

// logRequest logs a request as the original does: 1 if the connection is kept, 0 if it is closed.
func (h *Handler) logRequest(peer string, magic frame.Magic, keep bool) {
	if h.opts.Meters.Sampling || !h.opts.Logger.Enabled(context.Background(), slog.LevelInfo) {
		return
	}
	kept := 0
	if keep {
		kept = 1
	}
	h.opts.Logger.Info(fmt.Sprintf("(%s): bin_%s: %d", peer, magic, kept))
}

// logFailure logs a database error. Errors of the connection are not logged.
func (h *Handler) logFailure(err error) {
	if e, ok := errors.AsType[*dberr.Error](err); ok && !dberr.Expected(err) {
		h.opts.Logger.Error("database error: " + e.Error())
	}
}
