package script

import (
	"errors"
	"fmt"
	"iter"
	"math"
	"sort"
	"time"

	lua "github.com/yuin/gopher-lua"

	"gotycoon/db"
	"gotycoon/db/dberr"
)

// Sizes of the stacks of an interpreter. They grow on demand.
const (
	maxCalls      = 20_000 // calls inside each other, as in the reference interpreter
	stackValues   = 512
	stackGrowth   = 4 << 10
	maxStackValue = 4 << 20
)

func (p *shared) newState(thid int) *state {
	l := lua.NewState(lua.Options{SkipOpenLibs: true, CallStackSize: maxCalls, MinimizeStackMemory: true,
		RegistrySize: stackValues, RegistryMaxSize: maxStackValue, RegistryGrowStep: stackGrowth})
	s := &state{budget: budget{newLeash(), p.newRoom()}, pool: p, thid: thid, l: l, holder: new(holder)}
	if p.opts.Memory > 0 {
		s.leash.memory = newMemory(l, p.opts.Memory)
	}
	s.loader = &loader{budget: s.budget, l: l}
	s.protector = newProtector(l, s.leash, p.opts.Logger)
	s.openLibraries()
	s.openServer()
	l.SetContext(s.leash)
	return s
}

// loadTime is how long the script itself may take at least, in each interpreter. A server whose
// script was not loaded in time, because the machine was busy, would serve without procedures.
const loadTime = 10 * time.Second

// run runs the script itself.
func (s *state) run(source string) error {
	var owed db.Pending
	limit := s.pool.opts.Time
	if limit > 0 {
		limit = max(limit, loadTime)
	}
	s.begin(limit, nil, &owed)
	f, err := s.loader.load(source, source)
	if err == nil {
		err = s.protector.protected(s.l, f, nil, 0, nil)
	}
	if err != nil {
		err = errors.New(s.errorText(err))
	}
	return errors.Join(err, s.end(err != nil), owed.Wait())
}

// errorText returns an error for the log. As in the original, an error value that is no text is
// shown as (null).
func (s *state) errorText(err error) string {
	if _, ok := errors.AsType[*lua.ApiError](err); !ok {
		return err.Error()
	}
	if t, ok := text(errorValue(err)); ok {
		return t
	}
	return "(null)"
}

// errLeftOpen: the transaction cannot be everybody's, because other servers have the database too.
var errLeftOpen error = &dberr.Error{Code: dberr.NotImplemented, Message: "a transaction in a shared engine ends with the call that began it"}

func (s *state) begin(limit time.Duration, heed db.Heed, owed *db.Pending) {
	s.owed = owed
	s.leash.begin(limit, heed)
	if s.pool.stopped() { // Stop found the call before it
		s.leash.pull(errStopping)
	}
}

// end ends a call. A transaction that the call has left open is shared by all clients from now on;
// it is aborted if the call has failed, or if an engine keeps the database for several servers. The
// error says that, or that updates of a database of the script's own are not durable; nobody may be
// told then that the call has succeeded.
func (s *state) end(failed bool) error {
	s.leash.end()
	var all error
	for _, h := range s.begun {
		switch {
		case failed:
			_ = h.tx.Abort() // the call has failed already
		case h.db.Info().Shared:
			all = errors.Join(all, errLeftOpen, h.tx.Abort())
		default:
			h.tx.Share()
		}
		h.tx = nil
	}
	s.begun = s.begun[:0]
	s.pool.holds.releaseAll(s.holder)
	s.owed = nil
	for _, h := range s.dirty {
		if err := h.awaitUpdates(); err != nil {
			all = errors.Join(all, fmt.Errorf("a database of the script: %w", err))
		}
	}
	s.dirty = s.dirty[:0]
	return all
}

// call calls a procedure: see Pool.Call.
func (s *state) call(heed db.Heed, owed *db.Pending, name string, in iter.Seq2[[]byte, []byte], out func(key, value []byte)) (status int) {
	f, ok := s.global(name)
	if !ok {
		return NoImpl
	}
	input, output := s.l.NewTable(), s.l.NewTable()
	for key, value := range in {
		input.RawSetString(string(key), s.room.text(string(value)))
	}
	s.begin(s.pool.opts.Time, heed, owed)
	s.loader.serving = true
	err := s.protector.protected(s.l, f, []lua.LValue{input, output}, 1, nil)
	s.loader.serving = false
	status = Internal
	if err == nil {
		status = statusOf(s.l.Get(-1))
		s.l.Pop(1)
	} else {
		s.pool.error("[SCRIPT]: %s: %s", name, s.errorText(err))
		if s.leash.unheeded {
			status = Unavailing
		}
	}
	if err := s.end(err != nil); err != nil {
		s.pool.error("[SCRIPT]: %s: %s", name, err)
		status = Internal
	}
	if status == Success {
		rows(output, out)
	}
	return status
}

// global returns a global function.
func (s *state) global(name string) (*lua.LFunction, bool) {
	f, ok := s.l.G.Global.RawGetString(name).(*lua.LFunction)
	return f, ok
}

// statusOf returns the status that the result of a procedure means.
func statusOf(v lua.LValue) int {
	f, ok := number(v)
	if !ok {
		return Success
	}
	if f != math.Trunc(f) {
		f = math.Trunc(f)
	}
	n := int64(int32(cInt64(f)))
	if n < 0 || n > Internal {
		return Internal
	}
	return int(n)
}

// rows gives the output table to out, in the order of the keys. Pairs that cannot be records are
// left out. The slices are the bytes of the script's texts: whoever keeps them makes the only copy,
// and can ask for its memory first.
func rows(t *lua.LTable, out func(key, value []byte)) {
	var keys []string
	values := map[string]string{}
	for key, value := t.Next(lua.LNil); key != lua.LNil; key, value = t.Next(key) {
		k, ok := outputText(key)
		v, alsoOK := outputText(value)
		if !ok || !alsoOK {
			continue
		}
		if _, twice := values[k]; !twice {
			keys = append(keys, k)
		}
		values[k] = v
	}
	sort.Strings(keys)
	for _, k := range keys {
		out(bytesOf(k), bytesOf(values[k]))
	}
}

func outputText(v lua.LValue) (string, bool) {
	if v.Type() == lua.LTBool {
		return v.String(), true
	}
	return bulkValue(v)
}
