package script

import (
	"cmp"
	"fmt"
	"os"
	"slices"
	"time"

	lua "github.com/yuin/gopher-lua"

	"gotycoon/db"
	"gotycoon/db/dberr"
)

var (
	errChecker     error = &dberr.Error{Code: dberr.LogicInconsistency, Message: "checker failed"}
	errNoDirectory error = &dberr.Error{Code: dberr.NoRepository, Message: "no such directory"}
)

// mapReduce is one run of db:mapreduce. All emitted values stay in memory; a directory for
// temporary files only has to exist.
type mapReduce struct {
	c               call
	mapper, reducer lua.LValue
	log, proc       lua.LValue
	emitted         map[string][]string
	keys, size      int
	begun           time.Time
	emit            *lua.LFunction
	temporary       string
}

// reduceNoLock is the option of mapreduce that does not lock the database.
const reduceNoLock = 1

func dbMapReduce(c call) int {
	h := c.handleOf(1)
	r := &mapReduce{c: c, mapper: c.l.Get(2), reducer: c.l.Get(3), log: c.l.Get(9), proc: c.l.Get(10), emitted: map[string][]string{}}
	if !c.callable(r.mapper) || !c.callable(r.reducer) {
		c.refuse()
	}
	if c.has(4) {
		r.temporary = c.text(4)
	}
	r.emit = c.s.function("mr_emit", 2, 2, r.take)
	run := h.visit
	if c.int(5, 0)&reduceNoLock != 0 {
		run = h.open
	}
	return c.pushBool(run(c, r.run))
}

// open runs an operation during which the script may use the same database (XNOLOCK).
func (h *handle) open(c call, op func(d *db.DB) error) bool {
	if h.db == nil {
		return h.refuse("not opened")
	}
	ok := h.note(op(h.current()))
	h.s.leash.check(c.l)
	return ok
}

// take serves the function emit, which map calls with a key and a value.
func (r *mapReduce) take(c call) int {
	key, value := c.text(1), c.text(2)
	if r.emitted[key] == nil {
		r.keys++
	}
	r.emitted[key] = append(r.emitted[key], value)
	r.size += varintSize(len(key)) + len(key) + varintSize(len(value)) + len(value)
	c.s.allow(c.l, float64(r.size))
	return c.pushBool(true)
}

func (r *mapReduce) run(d *db.DB) error {
	if r.temporary != "" {
		if info, err := os.Stat(r.temporary); err != nil || !info.IsDir() {
			return errNoDirectory
		}
	}
	for _, phase := range []func(d *db.DB) error{r.prepare, r.mapAll, r.reduceAll, r.clean} {
		if err := phase(d); err != nil {
			return err
		}
	}
	return nil
}

// say tells the script's log function about a phase. The log function can end the run.
func (r *mapReduce) say(phase, message string) error {
	if !r.c.callable(r.log) {
		return nil
	}
	return r.check(r.log, lua.LString(phase), lua.LString(message))
}

// finished is say with the time since begun.
func (r *mapReduce) finished(phase, message string) error {
	return r.say(phase, fmt.Sprintf("%s finished: time=%.6f", message, time.Since(r.begun).Seconds()))
}

// check calls a function that must return a true value.
func (r *mapReduce) check(f lua.LValue, args ...lua.LValue) error {
	results, err := r.c.protect(f, 1, args...)
	if err != nil || !lua.LVAsBool(results[0]) || r.c.s.leash.Err() != nil {
		return errChecker
	}
	return nil
}

// process calls the script's function for what is to be done between the phases.
func (r *mapReduce) process(emit lua.LValue) error {
	if !r.c.callable(r.proc) {
		return nil
	}
	return r.check(r.proc, emit)
}

func (r *mapReduce) prepare(*db.DB) error {
	r.begun = time.Now()
	where := "on memory"
	if r.temporary != "" {
		where = "under " + r.temporary
	}
	if err := r.say("prepare", "started to open temporary databases "+where); err != nil {
		return err
	}
	if err := r.finished("prepare", "opening temporary databases"); err != nil {
		return err
	}
	return r.process(r.emit)
}

func (r *mapReduce) mapAll(d *db.DB) error {
	n, err := d.Count(r.c.s.owed)
	if err != nil {
		return err
	}
	r.begun = time.Now()
	if err := r.say("map", fmt.Sprintf("started the map process: scale=%d", n)); err != nil {
		return err
	}
	var failed error
	err = d.Walk(r.c.s.leash.ask, r.c.s.owed, func(key, value []byte, _ int64) bool {
		failed = r.check(r.mapper, lua.LString(key), r.c.s.room.text(string(value)), r.emit)
		return failed == nil && r.c.s.stillRoom()
	})
	if failed != nil || err != nil {
		return firstError(failed, err)
	}
	r.c.s.leash.check(r.c.l)
	if r.keys > 0 {
		if err := r.say("map", fmt.Sprintf("started to flushing the cache: count=%d size=%d", r.keys, r.size)); err != nil {
			return err
		}
		if err := r.finished("map", "flushing the cache"); err != nil {
			return err
		}
	}
	if err := r.finished("map", "the map process"); err != nil {
		return err
	}
	return r.process(r.emit)
}

// sortSteps is the cost of comparing two texts, in steps of the leash.
const sortSteps = 16

func firstError(a, b error) error {
	if a != nil {
		return a
	}
	return b
}

func (r *mapReduce) reduceAll(*db.DB) error {
	r.begun = time.Now()
	if err := r.say("reduce", fmt.Sprintf("started the reduce process: scale=%d", len(r.emitted))); err != nil {
		return err
	}
	keys := make([]string, 0, len(r.emitted))
	for key := range r.emitted {
		keys = append(keys, key)
	}
	slices.SortFunc(keys, func(a, b string) int {
		r.c.s.leash.work(r.c.l, sortSteps)
		return cmp.Compare(a, b)
	})
	for _, key := range keys {
		values := r.emitted[key]
		next := r.c.s.function("mr_iter", 0, anyNumber, func(c call) int {
			if len(values) == 0 {
				return c.pushNil()
			}
			c.l.Push(lua.LString(values[0]))
			values = values[1:]
			return 1
		})
		if err := r.check(r.reducer, lua.LString(key), next); err != nil {
			return err
		}
	}
	if err := r.finished("reduce", "the reduce process"); err != nil {
		return err
	}
	return r.process(lua.LNil)
}

func (r *mapReduce) clean(*db.DB) error {
	r.begun = time.Now()
	if err := r.say("clean", "closing the temporary databases"); err != nil {
		return err
	}
	return r.finished("clean", "closing the temporary databases")
}
