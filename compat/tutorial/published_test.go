package tutorial

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

// typed is a line of the published tutorial with the output that is shown there. note says where
// this output differs from what is printed: where the published line is not what anybody saw, where
// it takes a minute, or where it says less than must be checked.
type typed struct {
	cmd      string // interrupt, or interrupt and a port: see shell.interrupt
	out      string // as published, unless note says otherwise
	anyOrder bool   // lines of a hash database: their order is that of a hash table
	note     string
}

const (
	interrupt  = "^C"
	background = "a terminal of its own there"
	added      = "not in the tutorial: shows that the line before had its effect"
	shorter    = "one second instead of 60, and asked again until it has passed"
	noRecord   = "ktremotemgr: DB::get failed: :1978: 3: logical inconsistency: DB: 7: no record: no record"
)

var kickStart = []typed{
	{cmd: "ktserver &", note: background + "; two lines more, durability and protected, see compat/DIFFERENCES.md", out: `2010-10-03T16:24:38.467252+09:00: [SYSTEM]: ================ [START]: pid=19069
2010-10-03T16:24:38.467473+09:00: [SYSTEM]: opening a database: path=:
2010-10-03T16:24:38.467473+09:00: [INFO]: durability: ...
2010-10-03T16:24:38.467473+09:00: [INFO]: protected: ...
2010-10-03T16:24:38.467645+09:00: [SYSTEM]: starting the server: expr=:1978
2010-10-03T16:24:38.467751+09:00: [SYSTEM]: server socket opened: expr=:1978 timeout=30.0
2010-10-03T16:24:38.467775+09:00: [SYSTEM]: listening server socket started: fd=3`},
	{cmd: "ktremotemgr set japan tokyo"},
	{cmd: "ktremotemgr set korea seoul"},
	{cmd: "ktremotemgr set china beijing"},
	{cmd: "ktremotemgr get japan", out: "tokyo"},
	{cmd: "ktremotemgr get korea", out: "seoul"},
	{cmd: "ktremotemgr get china", out: "beijing"},
	{cmd: "ktremotemgr remove japan"},
	{cmd: "ktremotemgr list", out: "korea\nchina", anyOrder: true},
}

var overHTTP = []typed{
	{cmd: `curl "http://localhost:1978/rpc/set?key=japan&value=tokyo"`},
	{cmd: `curl "http://localhost:1978/rpc/get?key=japan"`, out: "value\ttokyo"},
	{cmd: `curl "http://localhost:1978/rpc/remove?key=japan"`},
	{cmd: `curl "http://localhost:1978/rpc/get?key=japan"`, out: "ERROR\tDB: 7: no record: no record", note: added},
	{cmd: `echo -n tokyo | curl -X PUT -T - "http://localhost:1978/japan"`},
	{cmd: `curl "http://localhost:1978/japan"`, out: "tokyo"},
	{cmd: `curl -X DELETE "http://localhost:1978/japan"`},
	{cmd: `curl -I "http://localhost:1978/japan"`, out: "HTTP/1.1 404 Not Found...\n...", note: added},
}

var expiration = []typed{
	{cmd: "ktremotemgr set -xt 60 japan tokyo"},
	{cmd: "ktremotemgr get -pt japan", out: "tokyo\t1286108387"},
	{cmd: "ktremotemgr set -xt 1 japan tokyo", note: shorter},
	{cmd: "ktremotemgr get -pt japan", out: noRecord, note: "published with code 2 for 3: the original prints 3"},
	{cmd: `curl "http://localhost:1978/rpc/set?key=japan&value=tokyo&xt=60"`},
	{cmd: `curl "http://localhost:1978/rpc/get?key=japan"`, out: "value\ttokyo\nxt\t1286109204"},
	{cmd: `curl "http://localhost:1978/rpc/set?key=japan&value=tokyo&xt=1"`, note: shorter},
	{cmd: `curl "http://localhost:1978/rpc/get?key=japan"`, out: "ERROR\tDB: 7: no record: no record"},
}

var sampleApplication = []typed{
	{cmd: "ktremotemgr clear", note: "not in the tutorial, whose output is that of an empty database"},
	{cmd: "go run sample.go", out: "hop\nfoo:hop\nbar:step\nbaz:jump", anyOrder: true, note: "a C++ program there"},
	{cmd: interrupt},
}

var scripts = []typed{
	{cmd: "ktserver -scr test.lua &", note: background + ", with log lines", out: "...\n...loading a script file: path=test.lua\n..."},
	{cmd: "ktremotemgr script set key japan value japan xt 60"},
	{cmd: "ktremotemgr get -pt japan", out: "japan\t1286108387", note: added},
	{cmd: "ktremotemgr script set key japan", out: "ktremotemgr: DB::play_script failed: :1978: 2: invalid operation: the scripting procedure failed", note: added},
	{cmd: interrupt},
}

var typicalServer = []typed{
	{cmd: "ktserver -port 1978 -tout 10 \\\n  -log /var/data/ktserver.log -ls \\\n  -dmn -pid /var/data/ktserver.pid \\\n" +
		"  '/var/data/casket.kch#opts=l#bnum=20000000#msiz=12g#dfunit=8'"},
	{cmd: "mv -f /var/data/ktserver.log /var/data/ktserver.log.`date '+%Y%M%d%H%M%S'`", note: "after the next but one there"},
	{cmd: "kill -HUP `cat /var/data/ktserver.pid`"},
	{cmd: "ls /var/data/ktserver.log", out: "/var/data/ktserver.log", note: added},
	{cmd: "ktremotemgr inform", out: "count: 0\nsize: ...", note: added},
	{cmd: "kill -TERM `cat /var/data/ktserver.pid`"},
}

var onMemoryServer = []typed{
	{cmd: "ktserver ':#bnum=20000000#ktcapsiz=10g' &", note: background},
	{cmd: "ktremotemgr set japan tokyo", note: added},
	{cmd: "ktremotemgr get japan", out: "tokyo", note: added},
	{cmd: interrupt},
	{cmd: "ktserver '*#bnum=20000000#capsiz=8g' &", note: background},
	{cmd: "ktremotemgr set japan tokyo", note: added},
	{cmd: "ktremotemgr get japan", out: "tokyo", note: added},
	{cmd: interrupt},
}

var snapshots = []typed{
	{cmd: "ktserver -bgs mysnap -bgsi 1 &", note: background + "; one second instead of 30"},
	{cmd: "ktremotemgr set france paris"},
	{cmd: "ktremotemgr set germany berlin"},
	{cmd: "ls mysnap", out: "00000000.ktss", note: added},
	{cmd: interrupt},
	{cmd: "ktserver -bgs mysnap -bgsi 30 &", note: background},
	{cmd: "ktremotemgr list -pv", out: "germany\tberlin\nfrance\tparis", anyOrder: true},
}

var signals = []typed{
	{cmd: "ktremotemgr vacuum"},
	{cmd: "ktremotemgr get -swname hello -swtime 60 hello > seen &", note: background},
	{cmd: "ktremotemgr set -ssname hello -ssbrd hello world"},
	{cmd: "cat seen", out: "world", note: added},
	{cmd: interrupt},
}

var hotBackup = []typed{
	{cmd: "ktserver -cmd /ktbin casket.kch &", note: background},
	{cmd: "ktremotemgr set one first", note: added},
	{cmd: "ktremotemgr sync -cmd dbbackup"},
	{cmd: "ls casket.kch.0*", out: "casket.kch.01293335993793000167", note: added},
	{cmd: "ktremotemgr remove one", note: added},
	{cmd: interrupt},
	{cmd: "cp casket.kch.0* casket.kch", note: added},
	{cmd: "ktserver -cmd /ktbin casket.kch &", note: added},
	{cmd: "ktremotemgr list -pv", out: "one\tfirst", note: added},
}

var updateLogging = []typed{
	{cmd: interrupt},
	{cmd: "rm casket.kch*", note: "a directory of its own there"},
	{cmd: "ktserver -ulog 0001-ulog -sid 1 -cmd /ktbin casket.kch &", note: background + "; published with the database before an option, which the original does not take"},
	{cmd: "ktremotemgr set one first"},
	{cmd: "ktremotemgr set two second"},
	{cmd: "ktremotemgr sync -cmd dbbackup"},
	{cmd: "ktremotemgr set three third"},
	{cmd: "ktremotemgr set four fourth"},
	{cmd: interrupt},
	{cmd: "rm casket.kch"},
	{cmd: "cp $(ls casket.kch.0*) casket.kch", note: "xxx… there"},
	{cmd: "kttimedmgr recover -ts $(ls casket.kch.0* | cut -d . -f 3) casket.kch 0001-ulog", out: ".. (2)\n...", note: "a line more: where the file ends"},
	{cmd: "kttimedmgr list -pv casket.kch", out: "one\tfirst\ntwo\tsecond\nthree\tthird\nfour\tfourth", anyOrder: true},
	{cmd: "ktserver -ulog 0001-ulog -sid 1 -ulim 1 -cmd /ktbin casket.kch &", note: "added, with a log file for every update, so that there are several"},
	{cmd: "ktremotemgr set five fifth", note: added},
	{cmd: "ktremotemgr set six sixth", note: added},
	{cmd: "ktremotemgr slave -uf", out: "0001-ulog/0000000001.ulog\t...\t1293335993793000167\n0001-ulog/0000000002.ulog\t...\n0001-ulog/0000000003.ulog\t..."},
	{cmd: "ktremotemgr slave -ur -ts $(ktremotemgr slave -uf | head -n 1 | cut -f 3)", note: "of another file there"},
	{cmd: "ktremotemgr slave -uf", out: "0001-ulog/0000000002.ulog\t...\n0001-ulog/0000000003.ulog\t...", note: added},
	{cmd: "ktremotemgr list -pv", out: "one\tfirst\ntwo\tsecond\nthree\tthird\nfour\tfourth\nfive\tfifth\nsix\tsixth", anyOrder: true, note: added},
	{cmd: interrupt},
}

var snapshotReplication = []typed{
	{cmd: "ktserver -port 1980 -ulog 0003-ulog -sid 1 -bgs 0001-bgs -bgsi 1 ':#bnum=10000000#ktopts=p' &",
		note: background + "; port 10001, 0001-ulog and 60 seconds there"},
	{cmd: "ktremotemgr setbulk -port 1980 one first two second"},
	{cmd: "ktremotemgr inform -port 1980", out: "count: 2\n...", note: added},
	{cmd: "until kttimedmgr bgsinform 0001-bgs | cut -f 3 | grep -q 2; do :; done", note: "wait for 60 seconds, there"},
	{cmd: "kttimedmgr bgsinform 0001-bgs", out: "0\t1295607805662000000\t2\t..."},
	{cmd: "cp -r 0001-bgs 0002-bgs"},
	{cmd: "kttimedmgr bgsinform 0001-bgs | cut -f 2 > 0002.rts", note: "published with < for >"},
	{cmd: "ktserver -port 1981 -sid 2 -bgs 0002-bgs -bgsi 60 -mhost localhost -mport 1980 -rts 0002.rts ':#bnum=10000000#ktopts=p' &",
		note: background},
	{cmd: "ktremotemgr set -port 1980 three third", note: added},
	{cmd: "ktremotemgr get -port 1981 two", out: "second", note: added},
	{cmd: "ktremotemgr get -port 1981 three", out: "third", note: added},
}

// backupScript is the script that the tutorial has clients call, in /ktbin.
const backupScript = "#! /bin/sh\nsrcfile=\"$1\"\ndestfile=\"$1.$2\"\ncp -f \"$srcfile\" \"$destfile\"\n"

// scriptOfSet is a procedure with the parameters of the tutorial's.
const scriptOfSet = `local kt = __kyototycoon__
function set(given, result)
  if not given.key or not given.value then return kt.RVEINVALID end
  return kt.db:set(given.key, given.value, given.xt) and kt.RVSUCCESS or kt.RVEINTERNAL
end
`

// typePublished types the original's tutorial, in its order, but for the sections on memcached and
// the void database (package compat).
func typePublished(t *testing.T, p programs) {
	s := newShell(t, p, "/ktbin", "/var/data")
	require.NoError(t, os.WriteFile(filepath.Join(s.dir, "ktbin/dbbackup"), []byte(backupScript), 0o755))
	require.NoError(t, os.WriteFile(filepath.Join(s.dir, "test.lua"), []byte(scriptOfSet), 0o644))
	require.NoError(t, os.WriteFile(filepath.Join(s.dir, "sample.go"), []byte(s.names.Replace(sample)), 0o644))
	for _, section := range [][]typed{
		kickStart, overHTTP, expiration, sampleApplication, scripts, typicalServer, onMemoryServer, snapshots, signals, hotBackup,
		updateLogging, replicated, dualMaster, snapshotReplication,
	} {
		for _, row := range section {
			s.playTyped(t, row)
		}
	}
}

func (s *shell) playTyped(t *testing.T, row typed) {
	t.Helper()
	if port, ok := strings.CutPrefix(row.cmd, interrupt); ok {
		s.interrupt(t, s.ports[strings.TrimSpace(port)])
		return
	}
	compare := fits
	if row.anyOrder {
		compare = fitsSorted
	}
	s.play(t, step{cmd: row.cmd, out: lines(row.out)}, compare)
}

// interrupt presses Ctrl-C in the terminal of the newest server, or of the newest server on a port.
// The server must end without an error.
func (s *shell) interrupt(t *testing.T, port string) {
	t.Helper()
	for _, j := range slices.Backward(s.jobs) {
		if j.port != "" && (port == "" || j.port == port) {
			j.stop(syscall.SIGINT)
			j.awaitEnd(t, interrupt)
			require.Contains(t, j.out.String(), "[FINISH]", j.line)
			return
		}
	}
	t.Fatal("there is no such server")
}
