package client

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"iter"
	"math"
	"strconv"

	"gotycoon/client/wire/frame"
)

// FollowOptions say what Follow brings. The zero value is usable: all updates from now on.
type FollowOptions struct {
	After uint64 // updates newer than this Update.Stamp; 0: from now on
	All   bool   // instead of After: all updates that the log still has, then those to come
	LogID string // identity of the log that After belongs to (Reach.LogID); empty: not known

	// Without is the ID of a server whose updates are left out, Only that of the one server whose
	// updates come. 0 means nobody; but the protocol has no word for that, so Without is 65535
	// then.
	Without, Only uint16

	Progress bool // also yield updates of the kind Progress, whenever everything has come
}

// Follow iterates without end over the updates of all databases of the server, in the order of its
// update log. They are those of Watch, for programs that have the right to replicate. Servers of
// the original have no Watch and can be followed. Updates of databases that the server does not
// have any more are left out.
//
// Follow connects again when the connection breaks, and goes on behind the last update, so that
// every update comes once. It ends with an error that is yielded last: ErrGap if the log does not
// have everything any more, ErrLogChanged if the server has another log than before (servers of one
// cluster count as one), ErrNoLog, ErrDenied, or that of ctx. If the first connection fails, that
// is the end too.
func (c *Client) Follow(ctx context.Context, o FollowOptions) iter.Seq2[Update, error] {
	return func(yield func(Update, error) bool) {
		f := &follower{client: c, opts: o, at: o.After, logID: o.LogID, yield: yield}
		err := f.start(ctx)
		if err == nil {
			err = c.resume(ctx, func(begun func()) (ending, error) { return f.stream(ctx, begun) })
		}
		if err != nil {
			yield(Update{}, err)
		}
	}
}

// follower is one run of Follow.
type follower struct {
	client    *Client
	opts      FollowOptions
	at        uint64 // everything up to this stamp has come
	logID     string // of the log that at belongs to
	databases map[uint16]databaseKind
	yield     func(Update, error) bool
}

// start finds the place to begin at.
func (f *follower) start(ctx context.Context) error {
	if f.at != 0 || f.opts.All {
		return nil
	}
	files, err := f.client.UlogList(ctx)
	if refused, ok := errors.AsType[*Error](err); ok && (refused.Code == Invalid || refused.Code == NotImplemented) {
		err = noLog()
	}
	if err == nil && len(files) > 0 {
		f.at = files[len(files)-1].Last
	}
	return err
}

// stream follows the log over one connection. At its first message it calls check: now the server
// reads its log and keeps the files, so the answer stays true while the connection lasts.
func (f *follower) stream(ctx context.Context, begun func()) (ending, error) {
	sid, only := f.opts.Only, f.opts.Only != 0
	if !only {
		sid = f.opts.Without
	}
	if sid == 0 {
		sid = math.MaxUint16
	}
	f.databases = map[uint16]databaseKind{} // perhaps it is another server
	checked := false
	for m, err := range f.client.FollowLog(ctx, f.at, sid, only) {
		if err == nil && !checked {
			err = f.check(ctx)
			checked = true
		}
		if errors.Is(err, ErrNoLog) {
			return refused, err
		}
		if errors.Is(err, ErrNetwork) {
			return broken, err
		}
		if err != nil {
			return final, err
		}
		begun()
		if more, err := f.take(ctx, m); err != nil || !more {
			if errors.Is(err, ErrNetwork) {
				return broken, err
			}
			return final, err
		}
	}
	return final, nil
}

// check finds out whether updates behind the position are missing from the server's log.
func (f *follower) check(ctx context.Context) error {
	reach, err := f.client.UlogReach(ctx, f.at)
	if err != nil {
		return err
	}
	if f.logID != "" && reach.LogID != "" && f.logID != reach.LogID {
		report, err := f.client.Report(ctx)
		if err != nil {
			return err
		}
		if _, member := report["cluster_name"]; !member { // all members have the same stamps
			return &Error{Code: Miscellaneous, Message: fmt.Sprintf("%v than that which the stamp %d belongs to", ErrLogChanged, f.at), Err: ErrLogChanged}
		}
	}
	f.logID = reach.LogID
	if f.at > 0 && reach.Gap {
		return &Error{Code: Miscellaneous, Message: fmt.Sprintf("%v: the update log no longer has everything after the stamp %d", ErrGap, f.at), Err: ErrGap}
	}
	return nil
}

// take yields the update of a message. It returns false when the loop has ended.
func (f *follower) take(ctx context.Context, m LogMessage) (more bool, err error) {
	if m.Heartbeat {
		// The position stays: a server of the original that is started with its clock set back
		// gives later updates stamps below that of a heartbeat.
		return !f.opts.Progress || f.yield(Update{Kind: Progress, Stamp: f.at}, nil), nil
	}
	u, err := f.update(ctx, m)
	if err != nil {
		return false, err
	}
	f.at = m.TS
	return u.Kind == 0 || f.yield(u, nil), nil
}

// update makes an Update of a message. Its Kind is 0 if the message has none for anybody.
func (f *follower) update(ctx context.Context, m LogMessage) (u Update, err error) {
	if len(m.Log) == 0 {
		return u, nil
	}
	change, err := frame.DecodeChange(m.Log)
	if err != nil {
		return u, notUnderstood(m)
	}
	kind, err := f.kindOf(ctx, change.DBID)
	if err != nil || kind == noDatabase {
		return u, err
	}
	u = Update{Stamp: m.TS, DB: int(change.DBID), Server: change.SID, Key: string(change.Key)}
	switch change.Op {
	case frame.ChangeSet:
		u.Kind = Stored
		value := change.Value
		if kind != persistent {
			if len(value) < expirySize {
				return u, notUnderstood(m)
			}
			u.Expires = expiresAt(int64(value[0])<<32 | int64(binary.BigEndian.Uint32(value[1:])))
			value = value[expirySize:]
		}
		u.Value = append([]byte{}, value...)
	case frame.ChangeRemove:
		u.Kind = Removed
	case frame.ChangeClear:
		u.Kind = Cleared
	default:
		return u, notUnderstood(m)
	}
	return u, nil
}

func notUnderstood(m LogMessage) error {
	return &Error{Code: Internal, Message: fmt.Sprintf("the update with the stamp %d is not understood", m.TS)}
}

// expirySize is the length of the expiration time in front of a stored value.
const expirySize = 5

// databaseKind is what Follow has to know of a database.
type databaseKind int

const (
	usual      databaseKind = iota
	persistent              // its records have no expiration time
	noDatabase              // there is none, or not any more
)

// serversOwn is the first index that no database has: the services' records, and what the log notes
// for itself.
const serversOwn = 0xFFFE

// kindOf asks the server for the kind of a database, once for each connection.
func (f *follower) kindOf(ctx context.Context, db uint16) (databaseKind, error) {
	const persistentBit = 2 // of ktopts=p
	if db >= serversOwn {
		return noDatabase, nil
	}
	if kind, known := f.databases[db]; known {
		return kind, nil
	}
	kind := usual
	status, err := f.client.DB(strconv.Itoa(int(db))).Status(ctx)
	if refused, ok := errors.AsType[*Error](err); ok && refused.Code == Invalid {
		kind, err = noDatabase, nil
	}
	if status.Int("ktopts")&persistentBit != 0 {
		kind = persistent
	}
	if err == nil {
		f.databases[db] = kind
	}
	return kind, err
}
