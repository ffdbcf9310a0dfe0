package script_test

import (
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"gotycoon/db"
	"gotycoon/db/record"
	"gotycoon/internal/procinfo"
	"gotycoon/script"
)

// endless are procedures with Go functions that would take minutes, or for ever.
var endless = map[string]string{
	"insert":     `table.insert({}, -1e15, 1)`,
	"remove":     `local t = {} for i = 1, 2e6 do t[i] = i end while true do table.remove(t, 1) end`,
	"star":       `string.find(string.rep("a", 3e6), ".-.-.-b")`,
	"greedy":     `string.find(string.rep("a", 3e6), ".*b")`,
	"set":        `string.find(string.rep("a", 3e6), "[" .. string.rep("x-z", 1e5) .. "a]*b")`,
	"balance":    `string.find(string.rep("(", 3e6), "%b()")`,
	"back":       `string.find(string.rep("a", 2e6), "(a*)%1b")`,
	"gmatch":     `for w in string.gmatch(string.rep("a", 3e6), ".*b") do end`,
	"gsub":       `string.gsub(string.rep("a", 3e6), ".*b", "")`,
	"levdist":    `while true do __kyototycoon__.levdist(string.rep("a", 3e4), string.rep("b", 3e4)) end`,
	"regex":      `__kyototycoon__.regex(string.rep("a", 5e6), "(a*)*\\1b")`,
	"linear":     `__kyototycoon__.regex(string.rep("a", 5e6), "(a?){900}b")`,
	"replace":    `__kyototycoon__.regex(string.rep("a", 5e6), "(a?){900}b", "c")`,
	"split":      `local s = string.rep("a", 4e7) while true do __kyototycoon__.split(s, string.rep("b", 1e6)) end`,
	"codec":      `local s = string.rep("a", 2e8) while true do __kyototycoon__.codec("gzip", s) end`,
	"sort":       `local t = {} for i = 1, 1e6 do t[i] = (i * 7919) % 1000003 end while true do table.sort(t) table.sort(t, function(a, b) return a > b end) end`,
	"concat":     `local t = {} for i = 1, 1e6 do t[i] = i end while true do table.concat(t) end`,
	"pack":       `local s = string.rep("a", 2e7) while true do __kyototycoon__.unpack("w*", s) end`,
	"matchregex": `while true do __kyototycoon__.db:match_regex("(a*)*\\1b") end`,
	"similar":    `while true do __kyototycoon__.db:match_similar(string.rep("b", 3e4), 3e4) end`,
	"iterate":    `while true do __kyototycoon__.db:iterate(function() while true do end end) end`,
	"sleep":      `__kyototycoon__.sleep(1e6)`,
	"execute":    `os.execute("sleep 1000; true")`,
	"loop":       `while true do end`,
	"caught":     `while true do pcall(function() while true do end end) end`,
	"loading":    `local t = {"return {"} for i = 1, 1e4 do t[#t + 1] = i .. "," end t[#t + 1] = "}" while true do loadstring(table.concat(t)) end`,
}

// requireSoon requires that f takes less than 3 s of the processor, because other tests may have most
// of the machine, and less than 20 s in all.
func requireSoon(t *testing.T, f func()) {
	t.Helper()
	begun, before := time.Now(), procinfo.Read()
	f()
	took, after := time.Since(begun), procinfo.Read()
	require.Less(t, after.User+after.System-before.User-before.System, 3*time.Second)
	require.Less(t, took, 20*time.Second)
}

// The interpreter cannot stop a Go function: the function has to look at the leash itself.
func TestNoFunctionGoesOnBehindItsTime(t *testing.T) {
	const limit = 300 * time.Millisecond
	source := "function good(i, o) o.fine = true end\n"
	for name, code := range endless {
		source += "function " + name + "() " + code + " end\n"
	}
	h := start(t, source, func(o *script.Options) { o.Workers, o.Time = 1, limit })
	long := make([]byte, 200_000)
	for i := range long {
		long[i] = 'a'
	}
	require.NoError(t, h.catalog.DB(0).Set(nil, long, nil, record.Never))
	require.NoError(t, h.catalog.DB(0).Set(nil, long[:30_000], nil, record.Never))
	for name := range endless {
		t.Run(name, func(t *testing.T) {
			var status int
			requireSoon(t, func() { status, _ = h.call(name) })
			require.Equal(t, script.Internal, status)
			lines := h.lines()
			require.Contains(t, lines[len(lines)-1], "the script has run longer than it may")
			h.requireCallInTime(limit, map[string]string{"fine": "true"}, "good")
		})
	}
}

// A call whose client has gone ends, and its interpreter is free for others.
func TestACallEndsWithItsClient(t *testing.T) {
	source := "function good(i, o) o.fine = true end\n"
	for name, code := range endless {
		source += "function " + name + "() " + code + " end\n"
	}
	h := start(t, source, func(o *script.Options) { o.Workers = 1 })
	for _, name := range []string{"loop", "sleep", "star", "levdist", "caught"} {
		t.Run(name, func(t *testing.T) {
			begun := time.Now()
			heed := func() error {
				if time.Since(begun) > 100*time.Millisecond {
					return errors.New("the client has gone")
				}
				return nil
			}
			var owed db.Pending
			requireSoon(t, func() {
				require.Equal(t, script.Unavailing, h.pool.Call(heed, &owed, name, func(func(_, _ []byte) bool) {}, func(_, _ []byte) {}))
			})
			h.requireCall(map[string]string{"fine": "true"}, "good")
		})
	}
}
