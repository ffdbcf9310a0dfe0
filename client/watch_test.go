package client_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"gotycoon/client"
	"gotycoon/client/wire/tsv"
)

// watched is a server whose watches answer one after the other as told. Each answer gets the
// parameters of its call; what it writes goes out at once.
func watched(t *testing.T, answers ...func(w io.Writer, params map[string]string)) *client.Client {
	t.Helper()
	calls := make(chan func(io.Writer, map[string]string), len(answers))
	for _, a := range answers {
		calls <- a
	}
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		var rows tsv.Rows
		tsv.Decode(&rows, body, r.Header.Get("Content-Type"))
		params := map[string]string{}
		for row := range rows.All() {
			params[string(row.Name)] = string(row.Value)
		}
		if r.URL.Path != "/rpc/watch" || len(calls) == 0 {
			panic(http.ErrAbortHandler)
		}
		(<-calls)(flushing{w, r.Context()}, params)
	}))
	t.Cleanup(s.Close)
	c := client.New(s.Listener.Addr().String(), client.Options{FindTime: time.Minute})
	t.Cleanup(func() { require.NoError(t, c.Close()) })
	return c
}

type flushing struct {
	http.ResponseWriter
	gone context.Context // ends when the client has closed the connection
}

func (f flushing) Write(p []byte) (int, error) {
	n, err := f.ResponseWriter.Write(p)
	f.ResponseWriter.(http.Flusher).Flush()
	return n, err
}

const watchBegin = `{"event":"begin","ts":"5"}` + "\n"

func TestWatch(t *testing.T) {
	var asked map[string]string
	c := watched(t, func(w io.Writer, params map[string]string) {
		asked = params
		fmt.Fprint(w, `{"event":"begin","ts":"1795229613830000000"}
{"event":"set","ts":"1795229613840000000","key":"tea","value":"green","xt":1795230000}
{"event":"set","ts":"1795229613841000000","key":{"base64":"/w=="},"value":{"base64":"AAE="},"later":[]}
{"event":"something new","who":"knows"}
{"event":"remove","ts":"1795229613842000000","key":""}
{"event":"clear","ts":"1795229613843000000"}
{"event":"heartbeat","ts":"18446744073709551615"}
`)
		<-w.(flushing).gone.Done()
	})
	var got []client.Update
	o := client.WatchOptions{Prefix: "t\t", Keys: true, Heartbeat: 1500 * time.Millisecond, Progress: true}
	for u, err := range c.DB("db").Watch(t.Context(), o) {
		require.NoError(t, err)
		if got = append(got, u); u.Kind == client.Progress && len(got) > 1 {
			break
		}
	}
	require.Equal(t, map[string]string{"DB": "db", "ts": "now", "prefix": "t\t", "keys": "", "heartbeat": "1.5"}, asked)
	require.Equal(t, []client.Update{
		{Kind: client.Progress, Stamp: 1795229613830000000},
		{Kind: client.Stored, Stamp: 1795229613840000000, Key: "tea", Value: []byte("green"), Expires: time.Unix(1795230000, 0)},
		{Kind: client.Stored, Stamp: 1795229613841000000, Key: "\xff", Value: []byte{0, 1}},
		{Kind: client.Removed, Stamp: 1795229613842000000},
		{Kind: client.Cleared, Stamp: 1795229613843000000},
		{Kind: client.Progress, Stamp: 18446744073709551615},
	}, got)
	require.Equal(t, time.UnixMilli(1795229613840), got[1].Time())
	require.Equal(t, "stored removed cleared progress", fmt.Sprint(client.Stored, client.Removed, client.Cleared, client.Progress))
}

// However a stream ends, the next one goes on behind what has come, heartbeats included.
func TestWatchGoesOn(t *testing.T) {
	var asked []string
	next := func(text string, after func(w io.Writer)) func(io.Writer, map[string]string) {
		return func(w io.Writer, params map[string]string) {
			asked = append(asked, params["ts"])
			fmt.Fprint(w, text)
			after(w)
		}
	}
	broken := func(io.Writer) { panic(http.ErrAbortHandler) }
	ended := func(io.Writer) {}
	silent := func(w io.Writer) { <-w.(flushing).gone.Done() }
	c := watched(t,
		next(watchBegin+`{"event":"set","ts":"6","key":"a","value":"1"}`+"\n"+`{"event":"set","ts":"7","key":"b","va`, broken),
		next("", broken),
		func(w io.Writer, _ map[string]string) { w.(flushing).WriteHeader(http.StatusServiceUnavailable) },
		next(watchBegin+`{"event":"set","ts":"7","key":"b","value":"2"}`+"\n"+`{"event":"heartbeat","ts":"8"}`+"\n", ended),
		next(`{"event":"begin","ts":"8"}`+"\n"+`{"event":"end","ts":"8","reason":"slow","error":"read faster"}`+"\n", ended),
		next(`{"event":"begin","ts":"8"}`+"\n", silent),
		next(`{"event":"begin","ts":"8"}`+"\n"+`{"event":"remove","ts":"9","key":"b"}`+"\n"+
			`{"event":"end","ts":"9","reason":"gone","error":"the log is cut"}`+"\n", ended))
	var got []string
	var last error
	for u, err := range c.DB("").Watch(t.Context(), client.WatchOptions{After: 4, Heartbeat: time.Second}) {
		if last = err; err == nil {
			got = append(got, fmt.Sprint(u.Kind, " ", u.Key))
		}
	}
	require.Equal(t, []string{"stored a", "stored b", "removed b"}, got)
	require.Equal(t, []string{"4", "6", "6", "8", "8", "8"}, asked)
	require.ErrorIs(t, last, client.ErrGap)
	require.ErrorContains(t, last, "the log is cut")
}

// What does not begin, and what another try cannot mend, is told.
func TestWatchIsRefused(t *testing.T) {
	status := func(code int, text string) func(io.Writer, map[string]string) {
		return func(w io.Writer, _ map[string]string) {
			w.(flushing).Header().Set("Content-Type", "text/tab-separated-values")
			w.(flushing).WriteHeader(code)
			fmt.Fprintf(w, "ERROR\t%s\n", text)
		}
	}
	say := func(text string) func(io.Writer, map[string]string) {
		return func(w io.Writer, _ map[string]string) { fmt.Fprint(w, text) }
	}
	for name, row := range map[string]struct {
		answer func(io.Writer, map[string]string)
		want   error
	}{
		"another server's stamp": {status(400, "ts lies ahead"), nil},
		"no right":               {status(403, "access denied: no right to read"), client.ErrDenied},
		"a gap":                  {status(410, "the log begins later"), client.ErrGap},
		"an older server":        {status(501, "not implemented: watch"), errors.ErrUnsupported},
		"too many":               {status(503, "too many watches"), nil},
		"never begun":            {say(""), client.ErrNetwork},
		"another server":         {say("<html>\n"), client.ErrWrongServer},
		"another kind of key":    {say(watchBegin + `{"event":"set","ts":"6","key":7}` + "\n"), client.ErrWrongServer},
		"rules change":           {say(watchBegin + `{"event":"end","ts":"5","reason":"denied","error":"no more"}` + "\n"), client.ErrDenied},
	} {
		t.Run(name, func(t *testing.T) {
			c := watched(t, row.answer)
			var got []error
			for _, err := range c.DB("").Watch(t.Context(), client.WatchOptions{All: true}) {
				got = append(got, err)
			}
			require.Len(t, got, 1)
			require.Error(t, got[0])
			if row.want != nil {
				require.ErrorIs(t, got[0], row.want)
			}
			_, typed := errors.AsType[*client.Error](got[0])
			require.True(t, typed)
		})
	}
}

func TestTheEndOfAContextEndsAWatch(t *testing.T) {
	cause := errors.New("enough")
	ctx, cancel := context.WithCancelCause(t.Context())
	defer cancel(nil)
	c := watched(t, func(w io.Writer, _ map[string]string) {
		fmt.Fprint(w, watchBegin)
		<-w.(flushing).gone.Done()
	})
	var last error
	for _, err := range c.DB("").Watch(ctx, client.WatchOptions{Progress: true}) {
		last = err
		cancel(cause)
	}
	require.ErrorIs(t, last, cause)
	for _, err := range c.DB("").Watch(ctx, client.WatchOptions{}) {
		require.ErrorIs(t, err, cause)
	}
}

// Servers that do not know touch are asked for the value, and given it again.
func TestTouchOfAnOlderServer(t *testing.T) {
	var called []string
	conflicts := 1
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		called = append(called, r.URL.Path+" "+string(body))
		w.Header().Set("Content-Type", "text/tab-separated-values")
		switch r.URL.Path {
		case "/rpc/touch":
			w.WriteHeader(http.StatusNotImplemented)
		case "/rpc/get":
			fmt.Fprint(w, "value\tv\n")
		case "/rpc/cas":
			if conflicts--; conflicts >= 0 {
				w.WriteHeader(450)
				fmt.Fprint(w, "ERROR\tDB: 8: logical inconsistency: status conflict\n")
			}
		}
	}))
	defer s.Close()
	c := client.New(s.Listener.Addr().String(), client.Options{})
	defer c.Close()
	require.NoError(t, c.DB("").Touch(t.Context(), "k", client.In(time.Hour)))
	cas := "/rpc/cas key\tk\nnval\tv\noval\tv\nxt\t3600\n"
	require.Equal(t, []string{"/rpc/touch key\tk\nxt\t3600\n", "/rpc/get key\tk\n", cas, "/rpc/get key\tk\n", cas}, called)
}
