package script_test

import (
	"errors"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"gotycoon/db"
	"gotycoon/db/dberr"
	"gotycoon/db/record"
	"gotycoon/script"
)

func TestEveryInterpreterRunsTheScript(t *testing.T) {
	h := start(t, `
		kt = __kyototycoon__
		kt.db:increment("loaded", 1)
		count = 0
		function who(i, o) count = count + 1 o.thid = kt.thid o.count = count kt.sleep(0.01) end`,
		func(o *script.Options) { o.Workers = 3 })
	n, err := h.catalog.DB(0).Increment(nil, []byte("loaded"), 0, 0, record.Never)
	require.NoError(t, err)
	require.EqualValues(t, 3, n)
	seen := map[string]bool{}
	for range 6 {
		_, out := h.call("who")
		seen[out["thid"]] = true
	}
	require.Len(t, seen, 3, "calls go round")
}

func TestABrokenScriptLeavesWhatItHasDefined(t *testing.T) {
	h := start(t, "function good(i, o) o.x = 1 end\nerror('stop')\nfunction never() end")
	h.requireCall(map[string]string{"x": "1"}, "good")
	status, _ := h.call("never")
	require.Equal(t, script.NoImpl, status)
	require.Equal(t, []string{
		`[ERROR]: [SCRIPT]: (init): [string "function good(i, o) o.x = 1 end..."]:2: stop`,
		"[ERROR]: could not load a script file: ",
	}, []string{h.lines()[0], h.lines()[1][:len("[ERROR]: could not load a script file: ")]})
}

func TestAMissingScriptLeavesNothing(t *testing.T) {
	h := start(t, "", func(o *script.Options) { o.Path = filepath.Join(t.TempDir(), "no.lua") })
	status, _ := h.call("f")
	require.Equal(t, script.NoImpl, status)
	require.Contains(t, h.log.String(), "could not load a script file: ")
}

func TestErrorsAreLoggedAndTheInterpreterGoesOn(t *testing.T) {
	h := start(t, `
		function bad(i, o) o.x = 1 local t = nil return t.field end
		function odd() error({}) end
		function deep() return 1 + deep() end
		function fine(i, o) o.ok = true end`, func(o *script.Options) { o.Workers = 1 })
	for _, name := range []string{"bad", "odd", "deep", "bad"} {
		status, out := h.call(name)
		require.Equal(t, script.Internal, status)
		require.Empty(t, out)
		h.requireCall(map[string]string{"ok": "true"}, "fine")
	}
	lines := h.lines()
	require.Len(t, lines, 4)
	require.Contains(t, lines[0], ":2: attempt to index a non-table object(nil) with key 'field'")
	require.Equal(t, "[ERROR]: [SCRIPT]: odd: (null)", lines[1])
	require.Contains(t, lines[2], "stack overflow")
}

func TestATransactionIsAloneUntilItsCallReturns(t *testing.T) {
	h := start(t, `
		db = __kyototycoon__.db
		function failing() db:begin_transaction() db:set("k", "lost") error("x") end
		function open() db:begin_transaction() db:set("k", "mine") end
		function commit() return db:end_transaction(true) and 0 or 3 end
		function abort() return db:end_transaction(false) and 0 or 3 end
		function twice(i, o) db:begin_transaction() o.again = pcall(db.begin_transaction, db) db:end_transaction(false) end
		function whole(i, o)
		  o.first = db:transaction(function() db:set("a", "1") return true end)
		  o.second = db:transaction(function() db:set("a", "2") end)
		  o.third = pcall(function() db:transaction(function() db:set("a", "3") error("x") end) end)
		  o.a = db:get("a")
		  o.inside = db:transaction(function() db:set("b", "1") return db:end_transaction(true) end)
		end`)
	status, _ := h.call("failing")
	require.Equal(t, script.Internal, status)
	require.Contains(t, h.value("k"), "no record")
	status, _ = h.call("commit")
	require.Equal(t, script.Logic, status, "the failed call has aborted it")

	h.requireCall(map[string]string{}, "open")
	require.Equal(t, "mine", h.value("k"), "it is everybody's now")
	require.NoError(t, h.catalog.DB(0).Set(nil, []byte("client"), []byte("v"), record.Never))
	h.requireCall(map[string]string{}, "abort")
	require.Contains(t, h.value("client"), "no record")

	h.requireCall(map[string]string{"again": "false"}, "twice")
	h.requireCall(map[string]string{"first": "true", "second": "true", "third": "false", "a": "1", "inside": "true"}, "whole")
	require.Equal(t, "1", h.value("b"))
}

// Of two calls that each hold a database and want the other one, exactly one gets an error.
func TestDeadlocksAreErrors(t *testing.T) {
	for name, source := range map[string]string{
		"transactions": `
			kt = __kyototycoon__
			function both(first, second, mark, wait)
			  first:begin_transaction()
			  rendezvous(mark, wait)
			  second:set("k", mark)
			  first:end_transaction(true)
			end`,
		"visitors": `
			kt = __kyototycoon__
			function both(first, second, mark, wait)
			  local ok, message
			  first:accept("k", function()
			    rendezvous(mark, wait)
			    ok, message = pcall(second.set, second, "k", mark)
			  end)
			  if not ok then error(message) end
			end`,
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			h := start(t, strings.ReplaceAll(source+`
				function rendezvous(mark, wait)
				  io.open("DIR/" .. mark, "w"):close()
				  while true do
				    local f = io.open("DIR/" .. wait)
				    if f then f:close() return end
				    kt.sleep(0.001)
				  end
				end
				function one() both(kt.dbs[1], kt.dbs[2], "one", "two") end
				function two() both(kt.dbs[2], kt.dbs[1], "two", "one") end`, "DIR", dir))
			statuses := h.together("one", "two")
			require.Equal(t, script.Internal, statuses["one"]+statuses["two"], "exactly one fails: %v", statuses)
			require.Contains(t, h.log.String(), "deadlock")
		})
	}
}

func TestVisitorsMustNotUseTheirOwnDatabase(t *testing.T) {
	h := start(t, evaluator)
	require.Equal(t, "false db_get: the database is being visited by this script",
		h.eval(`local r, e db:accept("a", function() r, e = pcall(db.get, db, "a") end) return r, e`))
	require.Equal(t, "true other", h.eval(`local d = kt.dbs[2] d:set("b", "other") return db:accept("a", function() return (d:get("b")) end), (db:get("a"))`))
}

// Increments by visitors, transactions, cursors and clients add up.
func TestUpdatesAddUp(t *testing.T) {
	h := start(t, `
		db = __kyototycoon__.db
		local function add(k, v) return tostring((tonumber(v) or 0) + 1) end
		function visit() for i = 1, 100 do db:accept("n", add) end end
		function transact() for i = 1, 100 do db:transaction(function() db:set("n", add("n", (db:get("n")))) return true end) end end
		function bulk() for i = 1, 50 do db:accept_bulk({"n", "m", "n"}, add) end end
		function point() db:add("n", "0") local c = db:cursor() for i = 1, 100 do c:jump("n") c:accept(add) end end`,
		func(o *script.Options) { o.Workers = 4 })
	client := make(chan error, 1)
	go func() {
		client <- func() error {
			for n := 0; n < 100; {
				old, _, err := h.catalog.DB(0).Get(nil, nil, []byte("n"))
				if errors.Is(err, dberr.ErrNoRecord) {
					old = nil
				}
				err = h.catalog.DB(0).CAS(nil, []byte("n"), old, increased(old), record.Never)
				if err == nil {
					n++
				} else if !errors.Is(err, dberr.ErrConflict) {
					return err
				}
			}
			return nil
		}()
	}()
	for name, status := range h.together("visit", "transact", "bulk", "point") {
		require.Zero(t, status, name+h.log.String())
	}
	require.NoError(t, <-client)
	require.Equal(t, "500", h.value("n"))
}

func increased(old []byte) []byte {
	n := 0
	for _, c := range old {
		n = n*10 + int(c-'0')
	}
	digits := []byte{}
	for n++; n > 0; n /= 10 {
		digits = append([]byte{byte('0' + n%10)}, digits...)
	}
	return digits
}

const runaways = `
	kt = __kyototycoon__
	function loop() while true do end end
	function stubborn() while true do pcall(function() while true do end end) end end
	function pattern() string.match(string.rep("a", 100), string.rep("a?", 100) .. string.rep("a", 100) .. "b") end
	function sleepy() kt.sleep(1000) end
	function coroutines() coroutine.wrap(function() while true do end end)() end
	function sorting() local t = {} for i = 1, 1000 do t[i] = i end table.sort(t, function() while true do end end) end
	function visiting() kt.db:accept("k", function() while true do end end) end
	function iterating() for i = 1, 9 do kt.db:set(i, i) end while true do kt.db:iterate(function() end) end end
	function waiting() kt.db:begin_transaction() kt.sleep(1000) end
	function fine(i, o) o.ok = 1 end`

func TestCallsThatTakeTooLongAreEnded(t *testing.T) {
	const limit = 50 * time.Millisecond
	h := start(t, runaways, func(o *script.Options) { o.Workers, o.Time = 1, limit })
	for _, name := range []string{"loop", "stubborn", "pattern", "sleepy", "coroutines", "sorting", "visiting", "iterating", "waiting"} {
		status, _ := h.call(name)
		require.Equal(t, script.Internal, status, name)
		h.requireCallInTime(limit, map[string]string{"ok": "1"}, "fine")
	}
	for _, line := range h.lines() {
		require.Contains(t, line, "the script has run longer than it may")
	}
	require.NoError(t, h.catalog.DB(0).Set(nil, []byte("k"), nil, record.Never), "nothing is locked")
}

// The script is loaded even if that takes longer than a call may: without it nothing can be called.
func TestASlowScriptIsLoaded(t *testing.T) {
	h := start(t, `__kyototycoon__.sleep(1.5)
		function fine(i, o) o.ok = 1 end`, func(o *script.Options) { o.Time = time.Second })
	h.requireCall(map[string]string{"ok": "1"}, "fine")
	require.Empty(t, h.lines())
}

func TestStopEndsCalls(t *testing.T) {
	h := start(t, runaways)
	ended := make(chan int, 2)
	for _, name := range []string{"loop", "waiting"} {
		go func() {
			status, _ := h.call(name)
			ended <- status
		}()
	}
	require.Eventually(t, func() bool { _, err := h.catalog.DB(0).Begin(closed(), false); return err != nil }, patience, time.Millisecond)
	h.pool.Stop()
	require.Equal(t, script.Internal, <-ended)
	require.Equal(t, script.Internal, <-ended)
}

func closed() chan struct{} {
	c := make(chan struct{})
	close(c)
	return c
}

func TestMemoryIsLimited(t *testing.T) {
	h := start(t, `
		function tables() local t = {} for i = 1, 1e9 do t[i] = {} end end
		function texts() local t = {} local s = string.rep("x", 1000) for i = 1, 1e9 do t[i] = s .. i end end
		function kept() kept_ = {} for i = 1, 1e9 do kept_["k" .. i] = i end end
		function large() return string.rep("x", 1e9) end
		function doubling() local s = "x" while true do s = s .. s end end
		function garbage(i, o) for i = 1, 100000 do local t = {i, i} end o.ok = 1 end
		function fine(i, o) kept_ = nil o.ok = 1 end`,
		func(o *script.Options) { o.Workers, o.Memory = 1, 4<<20 })
	for _, name := range []string{"tables", "texts", "kept", "large", "doubling"} {
		status, _ := h.call(name)
		require.Equal(t, script.Internal, status, name)
		h.requireCall(map[string]string{"ok": "1"}, "fine")
	}
	h.requireCall(map[string]string{"ok": "1"}, "garbage")
	for _, line := range h.lines() {
		require.Contains(t, line, "not enough memory")
	}
}

func TestExit(t *testing.T) {
	h := start(t, "function bye() os.exit(7) end function fine(i, o) o.ok = 1 end")
	status, _ := h.call("bye")
	require.Equal(t, script.Internal, status)
	h.requireCall(map[string]string{"ok": "1"}, "fine")

	told := 0
	h = start(t, "function bye() os.exit(7) end", func(o *script.Options) { o.Exit = func(status int) { told = status } })
	status, _ = h.call("bye")
	require.Equal(t, script.Internal, status)
	require.Equal(t, 7, told)
}

func TestDatabasesOfAScript(t *testing.T) {
	path := filepath.Join(t.TempDir(), "own.kct")
	h := start(t, strings.ReplaceAll(evaluator+`
		function garbage() for i = 1, 20 do local d = kt.DB:new() d:open(":") d:set("k", i) end end
		function left() own = kt.DB:new() return own:open("PATH") and own:set("k", "v") and 0 or 5 end
		function again(i, o) o.v = own:get("k") end`, "PATH", path), func(o *script.Options) { o.Workers = 1 })
	h.requireCall(map[string]string{}, "left")
	h.requireCall(map[string]string{"v": "v"}, "again")
	h.requireCall(map[string]string{}, "garbage")
	require.Equal(t, "false 4 a script cannot open or close a database of the server",
		h.eval(`return db:close(), db:error():code(), db:error():message()`))
	require.Equal(t, "false 3", h.eval(`local d = kt.DB:new() return d:open("`+path+`"), d:error():code()`), "it is in use")
	h.pool.Stop()
	require.NoError(t, h.pool.Close())
	c, err := db.Open([]string{path}, db.Options{})
	require.NoError(t, err)
	v, _, err := c.DB(0).Get(nil, nil, []byte("k"))
	require.NoError(t, err)
	require.Equal(t, "v", string(v))
	require.NoError(t, c.Close())
	h.pool = script.Load(script.Options{Catalog: h.catalog.View, Path: path}) // for the cleanup
}

// Scripts see the databases of the command line only. They cannot open the file of the services.
func TestScriptsDoNotReachTheServicesDatabase(t *testing.T) {
	path := filepath.Join(t.TempDir(), "services.kct")
	catalog, err := db.Open([]string{"%"}, db.Options{Services: path})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, catalog.Close()) })
	h := start(t, `kt = __kyototycoon__
function names(inmap, outmap)
  for name in pairs(kt.dbs) do outmap[name] = "" end
  return kt.RVSUCCESS
end
function open(inmap, outmap)
  local db = kt.DB:new()
  outmap.opened = tostring(db:open(inmap.path))
  return kt.RVSUCCESS
end`, func(o *script.Options) { o.Catalog = catalog.View })
	h.requireCall(map[string]string{"1": "", "%": ""}, "names")
	h.requireCall(map[string]string{"opened": "false"}, "open", "path", path)
}
