// Package remote is ktremotemgr: a client of a running server, for people and for scripts.
//
// Main is the command, and the table of its sub-commands is in commands. Each family of
// sub-commands has a file. The families share a call (call.go: the options of a run; connect.go:
// the connection to the server; advice.go: what an error says to look at) and its output
// (output.go).
package remote

import (
	"context"
	"io"

	"gotycoon/tools/cli"
)

// commands returns the table of sub-commands, in the order of the usage text.
func commands() []cli.Command[*call] {
	command := cli.NewCommand[*call]
	return []cli.Command[*call]{
		command("report", "", "print what the server tells about itself", report),
		command("config", "get [name] | set name value", "tell the options of the running server, or change one of those that can change while it runs", config),
		command("top", "", "show what the server is doing, again and again", top),
		command("stats", "[name ...]", "print the server's figures whose names begin so, or with -watch how they change", stats),
		command("script", "procedure [key value ...]", "call a script procedure", script),
		command("tunerepl", "[master]", "follow another master, or none", tuneReplication),
		command("cluster", "status | switchover HOST:PORT | add HOST:PORT | remove HOST:PORT | require NUMBER", "show the members of the cluster, or change them", clusterOf),
		command("replicas", "", "list the servers that replicate from this one", listReplicas),
		command("wait", "", "wait until followers have what was written until now, and print how many do", waitReplicas),
		command("inform", "", "print number and size of the records of a database", inform),
		command("clear", "", "remove all records", clearRecords),
		command("sync", "", "write a database to its file", synchronize),
		command("set", "key value", "store a record", set),
		command("remove", "key", "remove a record", remove),
		command("get", "key", "print a value", get),
		command("ttl", "key", "print how many seconds a record has left, or never", ttl),
		command("touch", "key [seconds]", "let a record expire after so many seconds, or never; its value stays", touch),
		command("list", "[key]", "print records, from the beginning or a key on", list),
		command("import", "[file]", "store records from lines KEY<tab>VALUE; lines KEY remove", importRecords),
		command("vacuum", "", "remove expired records", vacuum),
		command("compact", "", "give unused disk space of a database's file back", compact),
		command("slave", "", "print the update log, or list (-uf) and remove (-ur) its files", slave),
		command("watch", "[prefix]", "print changes of records as they happen: time stamp, set, remove or clear, key, value, expiration time", watch),
		command("ulog", "call [name]", "tell who needs files of the update log (list), keep files under a name (hold name) or no more (release name)", retain),
		command("backup", "file", "write a database as it is now to a file: a snapshot (.ktss, or - for the standard output) or a database (.kct .kch .kcd .kcf)", backup),
		command("checksum", "[from [to]]", "print number and checksum of records, in parts", checksum),
		command("compare", "[host:port] host:port", "tell whether two servers have the same records; tcp://host:port is one without TLS and credentials, such as an original", compare),
		command("migrate", "host:port host:port [database[=database] ...]", "move the databases of a running server, of the original too, to another one: copy them, follow the log, and with -switch verify and say when clients can move; tcp://host:port is a server without TLS and credentials", migrate),
		command("setbulk", "[key value ...]", "store records together", setBulk),
		command("removebulk", "[key ...]", "remove records together", removeBulk),
		command("getbulk", "[key ...]", "print records together", getBulk),
		command("match", "[prefix ...]", "print keys that begin alike", matchPrefix),
		command("regex", "[expression ...]", "print keys that match a regular expression", matchRegex),
		command("bigkeys", "[prefix]", "print the largest records of a database", bigKeys),
		command("monitor", "", "print the requests of the server while they are served", monitor),
		command("hotkeys", "", "count requests for some seconds, and print the keys with the most", hotKeys),
		command("bench", "", "put load on a server that has no records, or on two in turns, and print how long requests take", bench),
		command("seq", "[number]", "print sequence numbers, or explain one (-port of -sequence-port)", seq),
		command("quota", "call [number]", "query, apply, cancel, increase, decrease or empty a quota (-port of -quota-port)", quota),
		command("lock", "[key [-- command ...]]", "run a command under a lock; -status, -list or -cancel locks (-port of -lock-port)", lock),
		command("counter", "call [argument ...]", "get, acquire, release, stats or dump counters (-port of -counter-port)", counter),
	}
}

// Main runs ktremotemgr with the arguments that follow the program's name. It returns the exit
// code: 0, 1 after any failure, or the exit code of the command that lock or counter acquire has
// run.
func Main(ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	p := ktremotemgr()
	p.Commands = append(p.Commands, cli.NewCommand("shell", "", "run commands that are typed, or that the standard input has, over one connection",
		func(ctx context.Context, c *call) error { return runShell(ctx, c, ktremotemgr()) }))
	return p.Main(ctx, args, stdin, stdout, stderr)
}

// ktremotemgr is the program without its shell.
func ktremotemgr() cli.Program[*call] {
	return cli.Program[*call]{
		Name:     program,
		About:    "a client of a key-value server for the Kyoto Tycoon protocols",
		Commands: commands(),
		New:      newCall,
		Exit:     "0 when the server has done it; 1 after any failure, among them a record that is not there; 2 and 3 where compare and migrate find servers that differ, or cannot tell; 130 where a signal has ended migrate before the switch; with lock and counter acquire, that of the command that was run, 75 when it was not because what it needs was not to be had in time, and 76 when that was lost while it ran.",
		See:      []string{"ktserver", "kttimedmgr", "ktutilmgr"},
	}
}
