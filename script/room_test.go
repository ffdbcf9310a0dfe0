package script_test

import (
	"fmt"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"gotycoon/db"
	"gotycoon/db/record"
	"gotycoon/script"
)

// greedy are procedures that would make some hundred MiB and more, most of them within a few
// instructions.
var greedy = map[string]string{
	"rep":       `local t = {} for i = 1, 60 do t[i] = string.rep("x", 8e6) end`,
	"arguments": `local function f(...) end local r = string.rep f(` + strings.Repeat(`r("x", 8e6), `, 60) + `1)`,
	"double":    `local s = string.rep("x", 1e6) for i = 1, 9 do s = s .. s end`,
	"pieces":    `local t = {} for i = 1, 1e5 do t[i] = string.rep("x", 5000) end`,
	"concat":    `local t, s = {}, string.rep("x", 8e6) for i = 1, 60 do t[i] = s end table.concat(t)`,
	"format":    `local s = string.rep("x", 8e6) string.format(string.rep("%s", 60), ` + strings.Repeat("s, ", 60) + `s)`,
	"gsub":      `string.gsub(string.rep("x", 1e6), "x", string.rep("y", 50000))`,
	"upper":     `local s, t = string.rep("x", 8e6), {} for i = 1, 60 do t[i] = s:upper() end`,
	"reverse":   `local s, t = string.rep("x", 8e6), {} for i = 1, 60 do t[i] = s:reverse() end`,
	"arraydump": `local t, s = {}, string.rep("x", 8e6) for i = 1, 60 do t[i] = s end kt.arraydump(t)`,
	"mapdump":   `local t, s = {}, string.rep("x", 8e6) for i = 1, 60 do t["k" .. i] = s end kt.mapdump(t)`,
	"arrayload": `kt.arrayload(string.rep("\0", 1e7))`,
	"mapload":   `local t = {} for i = 1, 1e6 do t[i] = "\4\0" .. string.char(i % 256, i / 256 % 256, i / 65536, 1) end kt.mapload(table.concat(t))`,
	"unpack":    `kt.unpack("C*", string.rep("\0", 1e7))`,
	"split":     `kt.split(string.rep("a", 1e7), "a")`,
	"zeros":     `kt.split(string.rep("\0", 1e7))`,
	"strstr":    `kt.strstr(string.rep("a", 1e6), "a", string.rep("b", 500))`,
	"regex":     `kt.regex(string.rep("a", 1e5), "a", string.rep("b", 50000))`,
	"hex":       `local s, t = string.rep("a", 4e6), {} for i = 1, 60 do t[i] = kt.codec("hex", s) end`,
	"bomb":      `local s, t = kt.codec("gzip", string.rep("a", 2e7)), {} for i = 1, 20 do t[i] = kt.codec("~gzip", s) end`,
	"file":      `io.open("/dev/zero"):read("*a")`,
	"bytes":     `io.open("/dev/zero"):read(4e8)`,
	"chunk":     `loadfile("/dev/zero")`,
	"done":      `dofile("/dev/zero")`,
	"module":    `package.path = "/dev/zero" require("zeros")`,
	"buffer":    `io.open("/dev/null", "w"):setvbuf("full", 4e8)`,
	"line":      `local t, s = {}, string.rep("x", 8e6) for i = 1, 60 do t[i] = s end print(unpack(t))`,
	"get":       `local t = {} for i = 1, 500 do t[i] = kt.db:get("00001") end`,
	"bulk":      `local t = {} for i = 1, 60 do t[i] = string.format("%05d", i) end kt.db:get_bulk(t)`,
	"iterate":   `local t = {} kt.db:iterate(function(k, v) t[k] = v end, false)`,
	"keys":      `local t = {} for i = 1, 1e3 do t[i] = kt.db:match_prefix("") end`,
}

// heapPeak returns by how much the objects on the heap grew while f ran, at most, as seen each
// millisecond. The garbage collector runs often meanwhile: what nobody holds any more is not what is
// measured.
func heapPeak(f func()) uint64 {
	defer debug.SetGCPercent(debug.SetGCPercent(40))
	sample := []metrics.Sample{{Name: "/memory/classes/heap/objects:bytes"}}
	runtime.GC()
	metrics.Read(sample)
	before := sample[0].Value.Uint64()
	done, peak := make(chan struct{}), make(chan uint64)
	go func() {
		most := uint64(0)
		ticker := time.NewTicker(time.Millisecond)
		defer ticker.Stop()
		for {
			metrics.Read(sample)
			most = max(most, sample[0].Value.Uint64())
			select {
			case <-done:
				peak <- most
				return
			case <-ticker.C:
			}
		}
	}()
	f()
	close(done)
	return max(<-peak, before) - before
}

// A library function is refused a large value before it makes the value, with -scrmem and without.
func TestNoFunctionMakesMoreThanThereIsRoomFor(t *testing.T) {
	source := "kt = __kyototycoon__\nfunction good(i, o) o.fine = true end\n"
	for name, code := range greedy {
		source += "function " + name + "() " + code + " end\n"
	}
	const limit = 32 << 20
	for option, change := range map[string]func(*script.Options){
		"own":    func(o *script.Options) { o.Workers, o.Memory = 1, limit },
		"common": func(o *script.Options) { o.Workers, o.Room = 1, 2*limit },
	} {
		h := start(t, source, change)
		for i := range 100 {
			require.NoError(t, h.catalog.DB(0).Set(nil, fmt.Appendf(nil, "%05d", i), make([]byte, 1<<20), record.Never))
		}
		for i := range 2_000 {
			require.NoError(t, h.catalog.DB(0).Set(nil, fmt.Appendf(nil, "n%05d", i), nil, record.Never))
		}
		for name := range greedy {
			t.Run(option+"/"+name, func(t *testing.T) {
				peak := heapPeak(func() {
					status, _ := h.call(name)
					require.Equal(t, script.Internal, status)
				})
				lines := h.lines()
				require.Contains(t, lines[len(lines)-1], "not enough memory")
				h.requireCall(map[string]string{"fine": "true"}, "good")
				require.Less(t, peak, uint64(8*limit))
			})
		}
	}
}

// Values that nobody holds any more do not count, nor do parts of texts.
func TestGarbageLeavesRoom(t *testing.T) {
	h := start(t, `
		kt = __kyototycoon__
		function garbage(i, o)
			for i = 1, 30 do local s = string.rep("x", 8e6) end
			for i = 1, 60 do local t = kt.arrayload(string.rep("\0", 1e5)) end
			for i = 1, 30 do local t = kt.db:get("value") end
			o.fine = true
		end
		function parts(i, o)
			local s, t = string.rep("x", 8e6), {}
			for i = 1, 30 do
				t[#t + 1] = s:sub(2)
				t[#t + 1] = s:lower()
				t[#t + 1] = s .. ""
				if i < 5 then t[#t + 1] = s:match(".*") end
			end
			o.fine = true
		end`, func(o *script.Options) { o.Workers, o.Room = 1, 64<<20 })
	require.NoError(t, h.catalog.DB(0).Set(nil, []byte("value"), make([]byte, 8<<20), record.Never))
	for _, name := range []string{"garbage", "parts", "garbage"} {
		h.requireCall(map[string]string{"fine": "true"}, name)
	}
}

// One interpreter that takes all it can get leaves something for the others.
func TestAGreedyCallLeavesRoomForOthers(t *testing.T) {
	h := start(t, `
		all = {}
		function keep() while true do all[#all + 1] = string.rep("x", 1e6) end end
		function good(i, o) o.size = #string.rep("x", 8e6) end`, func(o *script.Options) { o.Workers, o.Room = 2, 64<<20 })
	status, _ := h.call("keep")
	require.Equal(t, script.Internal, status)
	h.requireCall(map[string]string{"size": "8000000"}, "good") // runs in the other interpreter
}

// A coroutine has stacks of its own, however little it does.
func TestCoroutinesCount(t *testing.T) {
	h := start(t, `
		function threads() local t = {} for i = 1, 20000 do t[i] = coroutine.create(function() end) end end
		function fine(i, o) for i = 1, 20000 do coroutine.wrap(function() end)() end o.ok = 1 end`,
		func(o *script.Options) { o.Workers, o.Memory = 1, 16<<20 })
	peak := heapPeak(func() {
		status, _ := h.call("threads")
		require.Equal(t, script.Internal, status)
	})
	require.Less(t, peak, uint64(256<<20))
	h.requireCall(map[string]string{"ok": "1"}, "fine")
}

// The taker of the output asks for memory before it copies a row, so the interpreter must not have
// made a copy.
func TestOutputIsNotCopiedForItsTaker(t *testing.T) {
	h := start(t, `
		large = string.rep("x", 8e6)
		function give(i, o) for n = 1, 8 do o[n] = large end end`, func(o *script.Options) { o.Workers = 1 })
	taken := 0
	var before, after runtime.MemStats
	status := h.pool.Call(nil, new(db.Pending), "give", func(func(_, _ []byte) bool) {}, func(_, value []byte) {
		if taken == 0 {
			runtime.ReadMemStats(&before)
		}
		taken += len(value)
		runtime.ReadMemStats(&after)
	})
	require.Equal(t, script.Success, status)
	require.Equal(t, 64_000_000, taken)
	require.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(1<<20))
}
