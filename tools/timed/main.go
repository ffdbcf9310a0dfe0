// Package timed is kttimedmgr: it works on database files that no server has open.
//
// Main is the command, and the table of its sub-commands is in commands. Each family of
// sub-commands has a file. The families share a call (call.go: the options of a run and the form of
// errors), the opening of databases (open.go), and input and output (text.go). db.Offline explains
// how a file of a crashed server is brought up to date when it is opened.
package timed

import (
	"context"
	"io"

	"gotycoon/tools/cli"
)

// commands returns the table of sub-commands, in the order of the usage text.
func commands() []cli.Command[*call] {
	command := cli.NewCommand[*call]
	return []cli.Command[*call]{
		command("create", "database", "create a database file", create),
		command("inform", "database", "print number and size of the records", inform),
		command("set", "database key value", "store a record", set),
		command("remove", "database key", "remove a record", remove),
		command("get", "database key", "print a value", get),
		command("list", "database [key]", "print records, from the beginning or a key on", list),
		command("clear", "database", "remove all records", clearRecords),
		command("import", "database [file]", "store records from lines KEY<tab>VALUE; lines KEY remove", importRecords),
		command("copy", "database file", "make a copy that is complete and of one moment", copyFile),
		command("dump", "database [file]", "write all records to a snapshot", dump),
		command("load", "database [file]", "store the records of a snapshot", load),
		command("vacuum", "database", "remove expired records", vacuum),
		command("merge", "database source ...", "store the records of other databases", merge),
		command("recover", "database logdir", "bring in the updates of a log, all or up to a moment", recoverLog),
		command("verify", "database [logdir]", "look at every page of a file and every record of its log", verify),
		command("compact", "database", "give back the space in a file that holds nothing, and merge its runs: older versions can open the file", compact),
		command("repair", "database newdatabase", "save what can be read of a damaged file into a new one", repair),
		command("check", "database", "read every record in two ways and compare", check),
		command("bgsinform", "file", "tell what is in a server's snapshots", bgsInform),
	}
}

// Main runs kttimedmgr with the arguments that follow the program's name. It returns the exit code:
// 0, or 1 after any failure.
func Main(ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	p := cli.Program[*call]{
		Name:     program,
		About:    "works on database files that no server has open",
		Commands: commands(),
		New:      newCall,
		See:      []string{"ktserver", "ktremotemgr", "ktutilmgr"},
	}
	return p.Main(ctx, args, stdin, stdout, stderr)
}

// Options returns the options of the run.
func (c *call) Options() *cli.Flags { return c.flags }

// End closes the databases that the run has opened, and prints the buffered output. It returns the
// first error.
func (c *call) End(err error) error {
	return advised(firstError(firstError(err, c.closeAll()), c.out.Flush()))
}
