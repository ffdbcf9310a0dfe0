package tutorial

import (
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

// typed is a line of the published tutorial and the output that is shown there. Its differences from what is printed
// there are in note: where the published line is not what anybody saw, where it takes a minute, or where it says less
// than must be checked.
type typed struct {
	cmd      string // interrupt: Ctrl-C in the terminal of the newest server
	out      string // as published, unless note says otherwise
	anyOrder bool   // lines of a hash database: their order is that of a hash table
	note     string
}

const (
	interrupt  = "^C"
	background = "a terminal of its own there"
	added      = "not in the tutorial: shows that the line before had its effect"
	shorter    = "one second instead of 60, and asked again until it has passed"
	notYet     = "needs a feature that is not there yet; must be refused"
	noRecord   = "ktremotemgr: DB::get failed: :1978: 3: logical inconsistency: DB: 7: no record: no record"
)

var kickStart = []typed{
	{cmd: "ktserver &", note: background + "; one line more, durability, see compat/DIFFERENCES.md", out: `2010-10-03T16:24:38.467252+09:00: [SYSTEM]: ================ [START]: pid=19069
2010-10-03T16:24:38.467473+09:00: [SYSTEM]: opening a database: path=:
2010-10-03T16:24:38.467473+09:00: [INFO]: durability: ...
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
	{cmd: "ktserver -scr test.lua", out: "ktserver: -scr: this version has no Lua scripts", note: notYet},
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
	{cmd: "ktserver -bgs mysnap -bgsi 30", out: "ktserver: -bgs: this version has no background snapshots", note: notYet},
	{cmd: "ktserver &", note: background + ", with -bgs"},
	{cmd: "ktremotemgr set france paris"},
	{cmd: "ktremotemgr set germany berlin"},
	{cmd: "ktremotemgr list -pv", out: "germany\tberlin\nfrance\tparis", anyOrder: true, note: "after a restart there"},
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

// backupScript is the script that the tutorial has clients call, in /ktbin.
const backupScript = "#! /bin/sh\nsrcfile=\"$1\"\ndestfile=\"$1.$2\"\ncp -f \"$srcfile\" \"$destfile\"\n"

// typePublished types the original's tutorial up to and including hot backup, in its order.
func typePublished(t *testing.T, p programs) {
	s := newShell(t, p, "/ktbin", "/var/data")
	require.NoError(t, os.WriteFile(filepath.Join(s.dir, "ktbin/dbbackup"), []byte(backupScript), 0o755))
	require.NoError(t, os.WriteFile(filepath.Join(s.dir, "test.lua"), nil, 0o644))
	require.NoError(t, os.WriteFile(filepath.Join(s.dir, "sample.go"), []byte(s.names.Replace(sample)), 0o644))
	for _, section := range [][]typed{
		kickStart, overHTTP, expiration, sampleApplication, scripts, typicalServer, onMemoryServer, snapshots, signals, hotBackup,
	} {
		for _, row := range section {
			s.playTyped(t, row)
		}
	}
}

func (s *shell) playTyped(t *testing.T, row typed) {
	t.Helper()
	if row.cmd == interrupt {
		s.interrupt(t)
		return
	}
	compare := fits
	if row.anyOrder {
		compare = fitsSorted
	}
	s.play(t, step{cmd: row.cmd, out: lines(row.out)}, compare)
}

// interrupt presses Ctrl-C in the terminal of the newest server, which must end well.
func (s *shell) interrupt(t *testing.T) {
	t.Helper()
	for _, j := range slices.Backward(s.jobs) {
		if j.port != "" {
			j.stop(syscall.SIGINT)
			j.awaitEnd(t, interrupt)
			require.Contains(t, j.out.String(), "[FINISH]", j.line)
			return
		}
	}
}
