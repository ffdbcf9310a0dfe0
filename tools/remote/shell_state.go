package remote

import (
	"slices"

	"gotycoon/tools/cli"
)

// shell runs commands that are typed, or that come from the standard input, over one connection.
// Every command but those of ownWords is the sub-command of its name.
type shell struct {
	*call
	program cli.Program[*call] // the sub-commands that the shell runs
	options map[string][]string

	chosen string // the database of use
	view   string // the option of view; empty: none
	over   bool   // after exit
}

// ownWords are the commands of the shell itself.
func ownWords() []cli.Command[*call] {
	return []cli.Command[*call]{
		{Name: "use", Args: "[database]", Help: "take this database from now on, or the first"},
		{Name: "view", Args: "tsv | json | hex", Help: "how values are printed from now on"},
		{Name: "help", Args: "[command]", Help: "list the commands, or explain one"},
		{Name: "exit", Help: "end; so does Ctrl-D"},
	}
}

func (s *shell) knows(name string) bool {
	return slices.ContainsFunc(s.program.Commands, func(c cli.Command[*call]) bool { return c.Name == name })
}
