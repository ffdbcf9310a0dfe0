package client

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"net/http"
	"strconv"
	"time"
)

// WatchOptions say what Watch brings. The zero value is usable: all changes from now on.
type WatchOptions struct {
	Prefix string // only records whose keys begin with it
	After  uint64 // changes newer than this Update.Stamp; 0: from now on
	All    bool   // instead of After: all changes that the log still has, then those to come
	Keys   bool   // leave out values and expiration times

	// Heartbeat is how often the server gives a sign of life when nothing changes, 1 s to 60 s; 0
	// means 10 s. A connection on which nothing has come for three times as long is broken.
	Heartbeat time.Duration

	// Progress has Watch also yield updates of the kind Progress: at first, when it watches, and
	// with each heartbeat. Who keeps stamps over restarts keeps those too: while no record with the
	// prefix changes, the log may lose what is behind an old stamp.
	Progress bool
}

// Watch iterates without end over the changes of the records of the database. Each has the whole
// new value of its record, whatever call has changed it.
//
// Watch connects again when the connection breaks, when the server stops, or when the loop is too
// slow for it, and goes on behind the last update, so that every change comes once. It ends with an
// error that is yielded last: ErrGap if the server's update log does not have everything any more
// (read the records anew, and watch from now on), ErrDenied, errors.ErrUnsupported from a server
// that has no update log or no such call, or that of ctx. If the first connection fails, that is
// the end too.
func (db *DB) Watch(ctx context.Context, o WatchOptions) iter.Seq2[Update, error] {
	return func(yield func(Update, error) bool) {
		w := &watcher{db: db, opts: o, yield: yield, at: "now"}
		switch {
		case o.All:
			w.at = "0"
		case o.After != 0:
			w.at = strconv.FormatUint(o.After, 10)
		}
		err := db.client.resume(ctx, func(begun func()) (ending, error) { return w.stream(ctx, begun) })
		if err != nil {
			yield(Update{}, err)
		}
	}
}

// watchBeat is the default of WatchOptions.Heartbeat.
const watchBeat = 10 * time.Second

// watcher is one run of Watch.
type watcher struct {
	db    *DB
	opts  WatchOptions
	at    string // parameter ts: everything up to there has come
	yield func(Update, error) bool
}

// stream watches over one connection.
func (w *watcher) stream(ctx context.Context, begun func()) (end ending, err error) {
	connecting, cancel := w.db.client.opts.limit(ctx)
	defer cancel()
	cn, err := w.db.client.dial(connecting)
	if err != nil {
		return endOf(err), err
	}
	defer cn.Close()
	limit := 3 * cmp.Or(w.opts.Heartbeat, watchBeat)
	watching, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	quiet := silence{time.AfterFunc(limit, func() { stop(context.DeadlineExceeded) }), limit}
	defer quiet.Stop()
	err = cn.during(watching, func(cn *conn) error {
		end, err = w.read(cn, quiet, begun)
		return err
	})
	if err != nil && end == final {
		end = endOf(err)
	}
	return end, err
}

// endOf says what another try is good for after an error.
func endOf(err error) ending {
	if errors.Is(err, ErrNetwork) {
		return broken
	}
	return final
}

// read sends the request and yields what comes.
func (w *watcher) read(cn *conn, quiet silence, begun func()) (ending, error) {
	params := []string{"ts", w.at}
	if w.opts.Prefix != "" {
		params = append(params, "prefix", w.opts.Prefix)
	}
	if w.opts.Keys {
		params = append(params, "keys", "")
	}
	if w.opts.Heartbeat != 0 {
		params = append(params, "heartbeat", formatFloat(w.opts.Heartbeat.Seconds()))
	}
	cn.out = appendCall(cn.out[:0], cn.auth, "watch", w.db.rows(params...))
	if err := cn.send(); err != nil {
		return broken, cn.refusal(err)
	}
	res, err := http.ReadResponse(cn.in, nil)
	if err != nil {
		return broken, networkError(err)
	}
	if res.StatusCode != http.StatusOK {
		return watchRefusal(res)
	}
	for lines := bufio.NewReader(res.Body); ; {
		quiet.Reset(quiet.limit)
		line, err := lines.ReadBytes('\n')
		quiet.Stop() // the time that the caller needs is no silence of the server
		if err != nil {
			return broken, networkError(err)
		}
		var e watchEvent
		if err := json.Unmarshal(line, &e); err != nil {
			return final, wrongServer(fmt.Sprintf("%.40q", line))
		}
		begun()
		if more, end, err := w.take(&e); !more {
			return end, err
		}
	}
}

// watchRefusal is the error of a stream that the server does not begin.
func watchRefusal(res *http.Response) (ending, error) {
	body, err := io.ReadAll(io.LimitReader(res.Body, keepOutBytes))
	if err != nil {
		return broken, networkError(err)
	}
	err = callError(res, errorText(res, decodeRows(body, res.Header.Get("Content-Type")), body))
	if res.StatusCode == http.StatusServiceUnavailable { // too many watches, or no primary
		return refused, err
	}
	return final, err
}

// watchEvent is a line of the stream. Unknown events and members are passed over.
type watchEvent struct {
	Event  string
	TS     uint64 `json:",string"`
	Key    watchBytes
	Value  watchBytes
	XT     int64
	Reason string // of the end
	Error  string
}

// watchBytes are a string, or bytes that are none: {"base64":"/w=="}.
type watchBytes []byte

// UnmarshalJSON implements json.Unmarshaler.
func (b *watchBytes) UnmarshalJSON(text []byte) error {
	if len(text) > 0 && text[0] == '{' {
		var coded struct{ Base64 []byte }
		err := json.Unmarshal(text, &coded)
		*b = coded.Base64
		return err
	}
	var s string
	err := json.Unmarshal(text, &s)
	*b = watchBytes(s)
	return err
}

// take yields the update of an event. more is false when the stream or the loop over it has ended.
func (w *watcher) take(e *watchEvent) (more bool, end ending, err error) {
	u := Update{Key: string(e.Key), Stamp: e.TS}
	switch e.Event {
	case "set":
		u.Kind, u.Value = Stored, e.Value
		if e.XT != 0 {
			u.Expires = time.Unix(e.XT, 0)
		}
	case "remove":
		u.Kind = Removed
	case "clear":
		u.Kind = Cleared
	case "begin", "heartbeat":
		u.Kind = Progress
	case "end":
		end, err = watchEnd(e)
		return false, end, err
	default:
		return true, final, nil
	}
	w.at = strconv.FormatUint(e.TS, 10)
	return u.Kind == Progress && !w.opts.Progress || w.yield(u, nil), final, nil
}

// watchEnd is the error of a stream that the server ends.
func watchEnd(e *watchEvent) (ending, error) {
	switch e.Reason {
	case "gone":
		return final, &Error{Code: Miscellaneous, Message: fmt.Sprintf("%v: %s", ErrGap, e.Error), Err: ErrGap}
	case "denied":
		return final, &Error{Code: Miscellaneous, Message: fmt.Sprintf("%v: %s", ErrDenied, e.Error)}
	}
	return broken, &Error{Code: Network, Message: fmt.Sprintf("the server has ended the stream (%s): %s", e.Reason, e.Error), Sent: true}
}
