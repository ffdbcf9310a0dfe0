package tutorial

// The sections on replication. Ports 10001 to 10003 are 1981 to 1983 here, and each section has
// directories of its own.

const (
	three = "ktremotemgr list -port 1983 -pv"

	ownNames  = "0011 to 0013 for 0001 to 0003: the sections share a directory here"
	ownPort   = "port 10001, 10002 or 10003 there"
	elsewhere = background + "; " + ownNames + "; " + ownPort
)

var replicated = []typed{
	{cmd: "ktserver -port 1978 -ulog 0011-ulog -sid 1 casket-0011.kch &", note: background + "; " + ownNames},
	{cmd: "ktserver -port 1979 -ulog 0012-ulog -sid 2 \\\n  -mhost localhost -mport 1978 -rts 0012.rts casket-0012.kch &", note: background + "; " + ownNames},
	{cmd: "ktremotemgr set -port 1978 one first"},
	{cmd: "ktremotemgr set -port 1978 two second"},
	{cmd: "ktremotemgr list -port 1978 -pv", out: "one\tfirst\ntwo\tsecond", anyOrder: true},
	{cmd: "ktremotemgr list -port 1979 -pv", out: "one\tfirst\ntwo\tsecond", anyOrder: true},
	{cmd: interrupt + " 1978"},
	{cmd: "rm casket-0011.kch"},
	{cmd: interrupt + " 1979"},
	{cmd: "ktserver -port 1979 -ulog 0012-ulog -sid 2 casket-0012.kch &", note: background + "; " + ownNames},
	{cmd: "ktserver -port 1980 -ulog 0013-ulog -sid 3 \\\n  -mhost localhost -mport 1979 -rts 0013.rts casket-0013.kch &", note: background + "; " + ownNames},
	{cmd: "ktremotemgr list -port 1979 -pv", out: "one\tfirst\ntwo\tsecond", anyOrder: true},
	{cmd: "ktremotemgr list -port 1980 -pv", out: "one\tfirst\ntwo\tsecond", anyOrder: true},
	{cmd: "ktremotemgr set -port 1979 three third", note: added},
	{cmd: "ktremotemgr get -port 1980 three", out: "third", note: added},
	{cmd: interrupt + " 1980"},
	{cmd: interrupt + " 1979"},
}

// The server that is gone comes back under another number, and both go on.
var dualMaster = []typed{
	{cmd: "ktserver -port 1981 -ulog 0021-ulog -sid 1 \\\n  -mhost localhost -mport 1982 -rts 0021.rts casket-0021.kch &", note: elsewhere},
	{cmd: "ktserver -port 1982 -ulog 0022-ulog -sid 2 \\\n  -mhost localhost -mport 1981 -rts 0022.rts casket-0022.kch &", note: elsewhere},
	{cmd: "ktremotemgr set -port 1981 one first"},
	{cmd: "ktremotemgr set -port 1981 two second"},
	{cmd: "ktremotemgr set -port 1982 three third"},
	{cmd: "ktremotemgr set -port 1982 four fourth"},
	{cmd: "ktremotemgr list -port 1981 -pv", out: "one\tfirst\ntwo\tsecond\nthree\tthird\nfour\tfourth", anyOrder: true},
	{cmd: "ktremotemgr list -port 1982 -pv", out: "one\tfirst\ntwo\tsecond\nthree\tthird\nfour\tfourth", anyOrder: true},
	{cmd: interrupt + " 1981"},
	{cmd: "rm casket-0021.kch"},
	{cmd: "ktserver -port 1983 -ulog 0023-ulog -sid 3 \\\n  -mhost localhost -mport 1982 -rts 0023.rts casket-0023.kch &", note: elsewhere},
	{cmd: three, out: "one\tfirst\ntwo\tsecond\nthree\tthird\nfour\tfourth", anyOrder: true, note: added},
	{cmd: "ktremotemgr tunerepl -port 1982 -mport 1983 localhost"},
	{cmd: "ktremotemgr set -port 1983 five fifth"},
	{cmd: "ktremotemgr set -port 1983 six sixth"},
	{cmd: "ktremotemgr list -port 1982 -pv", out: "one\tfirst\ntwo\tsecond\nthree\tthird\nfour\tfourth\nfive\tfifth\nsix\tsixth", anyOrder: true},
	{cmd: three, out: "one\tfirst\ntwo\tsecond\nthree\tthird\nfour\tfourth\nfive\tfifth\nsix\tsixth", anyOrder: true},
	{cmd: "ktremotemgr remove -port 1982 one", note: added},
	{cmd: three, out: "two\tsecond\nthree\tthird\nfour\tfourth\nfive\tfifth\nsix\tsixth", anyOrder: true, note: added},
	{cmd: interrupt + " 1983"},
	{cmd: interrupt + " 1982"},
}
