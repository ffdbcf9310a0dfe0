// Package timed is kttimedmgr: it works on database files while no server has them open. Main is the command; its sub-commands are
// in one table. How files of a crashed server are brought up to date is told at db.Offline.
package timed

import (
	"context"
	"io"

	"gotycoon/tools/cli"
	"gotycoon/tools/manual"
)

// command is an entry of the table of sub-commands.
func command(name, args, help string, run func(context.Context, *call) error) cli.Command[*call] {
	return cli.Command[*call]{Name: name, Args: args, Help: help, Run: run}
}

// commands are the sub-commands in the order of the usage text.
func commands() []cli.Command[*call] {
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
		command("compact", "database", "give back the space in a file that holds nothing", compact),
		command("repair", "database newdatabase", "save what can be read of a damaged file into a new one", repair),
		command("check", "database", "read every record in two ways and compare", check),
		command("bgsinform", "file", "tell what is in a server's snapshots", bgsInform),
	}
}

// Main runs the command with the arguments behind its name and returns the exit code: 0, or 1 after any failure.
func Main(ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	p := cli.Program[*call]{
		Name:     program,
		About:    "works on database files that no server has open",
		Commands: commands(),
		New:      newCall,
		Notes:    []manual.Section{{Title: "EXIT STATUS", Text: []string{"0, or 1 after any failure."}}},
		See:      []string{"ktserver", "ktremotemgr", "ktutilmgr"},
	}
	return p.Main(ctx, args, stdin, stdout, stderr)
}

// Options returns the options of the run.
func (c *call) Options() *cli.Flags { return c.flags }

// End closes what the run has opened, and prints what is left.
func (c *call) End(err error) error {
	return firstError(firstError(err, c.closeAll()), c.out.Flush())
}
