package crash

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"strings"
	"sync/atomic"

	"gotycoon/client/wire/frame"
)

// request is bytes to send, the updates they ask for, and how to read the answer.
type request struct {
	bytes   []byte
	updates []update
	answer  func(*client) error
}

// worker is a client that changes the keys with a prefix of its own.
type worker struct {
	history
	prefix string
	dbidx  uint16
	make   func(w *worker) request
	rng    *rand.Rand
	serial int // makes every value another one
}

const (
	workerKeys  = 1000 // keys of a worker
	maxPipeline = 4    // requests sent before the answers are read
	maxBulk     = 60
	maxAtomic   = 700 // more than a server would commit together by itself
)

// run sends requests until the connection breaks. That is an error unless the server has been
// killed.
func (w *worker) run(addr string, killed *atomic.Bool) error {
	err := w.work(addr)
	var wrong *statusError
	if killed.Load() && !errors.As(err, &wrong) {
		return nil
	}
	return fmt.Errorf("client %s: %w", w.prefix, err)
}

func (w *worker) work(addr string) error {
	c, err := dial(addr)
	if err != nil {
		return err
	}
	defer c.Close()
	for {
		if err := w.round(c); err != nil {
			return err
		}
	}
}

// round sends some requests and reads the answers.
func (w *worker) round(c *client) error {
	var bytes []byte
	requests := make([]request, 1+w.rng.IntN(maxPipeline))
	for i := range requests {
		requests[i] = w.make(w)
		bytes = append(bytes, requests[i].bytes...)
		w.sent = append(w.sent, requests[i].updates...)
	}
	if _, err := c.Write(bytes); err != nil {
		return err
	}
	for _, r := range requests {
		if err := r.answer(c); err != nil {
			return err
		}
		w.acked += len(r.updates)
	}
	return nil
}

func (w *worker) key() string { return fmt.Sprintf("%s-%d", w.prefix, w.rng.IntN(workerKeys)) }

// value returns a value that has never been stored before, mostly short.
func (w *worker) value() string {
	w.serial++
	size := w.rng.IntN(200)
	if w.rng.IntN(50) == 0 {
		size = w.rng.IntN(20_000)
	}
	return fmt.Sprintf("%d.%s", w.serial, strings.Repeat("v", size))
}

func (w *worker) set() change    { return change{key: w.key(), value: w.value()} }
func (w *worker) remove() change { return change{key: w.key(), removed: true} }

// some returns up to limit changes.
func (w *worker) some(limit int, what func() change) []change {
	changes := make([]change, 1+w.rng.IntN(limit))
	for i := range changes {
		changes[i] = what()
	}
	return changes
}

func httpAnswer(codes ...int) func(*client) error {
	return func(c *client) error { _, err := c.readHTTP(codes...); return err }
}

func binaryAnswer(m frame.Magic) func(*client) error {
	return func(c *client) error { return c.readReply(m) }
}

// oneByOne makes an update of each change.
func oneByOne(changes ...change) []update {
	updates := make([]update, len(changes))
	for i := range changes {
		updates[i].changes = changes[i : i+1]
	}
	return updates
}

// singles sets and removes single records, over HTTP.
func singles(w *worker) request {
	database := fmt.Sprint(w.dbidx)
	if w.rng.IntN(4) == 0 {
		c := w.remove()
		return request{rpc("remove", "DB", database, "key", c.key), oneByOne(c), httpAnswer(http.StatusOK, 450)}
	}
	c := w.set()
	return request{rpc("set", "DB", database, "key", c.key, "value", c.value), oneByOne(c), httpAnswer(http.StatusOK)}
}

// bulks sets and removes many records at once, over the binary protocol.
func bulks(w *worker) request {
	if w.rng.IntN(4) == 0 {
		changes := w.some(maxBulk, w.remove)
		return request{removeBulk(w.dbidx, changes), oneByOne(changes...), binaryAnswer(frame.RemoveBulk)}
	}
	changes := w.some(maxBulk, w.set)
	return request{setBulk(w.dbidx, changes), oneByOne(changes...), binaryAnswer(frame.SetBulk)}
}

// atomics sets and removes many records in one update.
func atomics(w *worker) request {
	procedure, what := "set_bulk", w.set
	if w.rng.IntN(4) == 0 {
		procedure, what = "remove_bulk", w.remove
	}
	limit := maxBulk
	if w.rng.IntN(4) == 0 {
		limit = maxAtomic
	}
	rows := []string{"DB", fmt.Sprint(w.dbidx), "atomic", ""}
	var changes []change
	seen := map[string]bool{}
	for _, c := range w.some(limit, what) {
		if !seen[c.key] {
			seen[c.key] = true
			changes = append(changes, c)
			rows = append(rows, "_"+c.key, c.value)
		}
	}
	return request{rpc(procedure, rows...), []update{{changes: changes}}, httpAnswer(http.StatusOK)}
}

// clears sets records and now and then clears the database, which is its own.
func clears(w *worker) request {
	if w.rng.IntN(30) == 0 {
		return request{rpc("clear", "DB", fmt.Sprint(w.dbidx)), []update{{clear: true}}, httpAnswer(http.StatusOK)}
	}
	return bulks(w)
}

// syncs changes nothing, but has the databases written to their files.
func syncs(w *worker) request {
	database := fmt.Sprint(w.rng.IntN(2))
	return request{rpc("synchronize", "DB", database, "hard", ""), nil, httpAnswer(http.StatusOK)}
}

// compacts has a file compacted, or, now and then, ends that. A compaction that fails gave way to the
// other clients, or was aborted.
func compacts(w *worker) request {
	rows := []string{"DB", fmt.Sprint(w.rng.IntN(2)), "wait", "1"}
	if w.rng.IntN(10) == 0 {
		rows = append(rows, "abort", "")
	}
	return request{rpc("compact", rows...), nil, httpAnswer(http.StatusOK, http.StatusInternalServerError)}
}

// logRemovals asks for the removal of whatever the update log does not need any more.
func logRemovals(*worker) request {
	return request{rpc("ulog_remove"), nil, httpAnswer(http.StatusOK)}
}
