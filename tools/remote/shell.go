package remote

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"strings"

	"golang.org/x/term"

	"gotycoon/tools/cli"
	"gotycoon/tools/show"
)

// views are the views of values, with the option that has a command print them.
var views = map[string]string{"tsv": "", "json": "json", "hex": "px"}

// runShell runs the shell. p has the sub-commands.
func runShell(ctx context.Context, c *call, p cli.Program[*call]) error {
	c.withDB()
	goOn := c.flags.Bool("k", false, "go on with the next line of a script after an error")
	if err := c.parse(0, 0); err != nil {
		return err
	}
	if _, err := c.open(ctx); err != nil {
		return err
	}
	s := &shell{call: c, program: p, chosen: c.db, options: map[string][]string{}}
	s.program.New = func(name string, args []string, stdin io.Reader, stdout, stderr io.Writer) *call {
		inner := newCall(name, args, stdin, stdout, stderr)
		inner.join(c)
		return inner
	}
	if keys, ok := c.stdin.(*os.File); ok && term.IsTerminal(int(keys.Fd())) && show.IsTerminal(c.stdout) {
		return s.talk(ctx, keys)
	}
	return s.script(ctx, *goOn)
}

// script runs the lines of the standard input. It stops at the first error unless it is to go on.
func (s *shell) script(ctx context.Context, goOn bool) error {
	in := bufio.NewReader(s.stdin)
	failed := 0
	for n := 1; !s.over && ctx.Err() == nil; n++ {
		line, err := in.ReadString('\n')
		if err != nil && !errors.Is(err, io.EOF) {
			return fmt.Errorf("reading line %d: %w", n, err)
		}
		if problem := s.run(ctx, strings.TrimRight(line, "\r\n"), scriptInput{}); problem != nil {
			if !goOn {
				return fmt.Errorf("line %d: %w", n, problem)
			}
			fmt.Fprintf(s.stderr, "%s: line %d: %v\n", program, n, problem)
			failed++
		}
		if err != nil {
			break
		}
	}
	if failed > 0 {
		return fmt.Errorf("lines that failed: %d", failed)
	}
	return ctx.Err()
}

// scriptInput is the standard input of commands in a script, whose lines are not meant for them.
type scriptInput struct{}

// Read refuses.
func (scriptInput) Read([]byte) (int, error) {
	return 0, errors.New("the standard input is the script of the shell: name a file")
}

// talk runs the lines that a person types.
func (s *shell) talk(ctx context.Context, keys *os.File) error {
	past, err := openHistory()
	if err != nil {
		fmt.Fprintf(s.stderr, "%s: %v\n", program, err)
	}
	defer past.close()
	fmt.Fprintf(s.stdout, "%s. \"help\" lists the commands, Tab completes, Ctrl-D ends.\n", s.prompt())
	e := newEditor(keys, s.stdout, past, func(text string) (string, []string) { return s.complete(ctx, text) })
	for !s.over {
		line, err := e.read(s.prompt() + "> ")
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		// Ctrl-C ends the command, not the shell.
		within, stop := signal.NotifyContext(ctx, os.Interrupt)
		err = s.run(within, line, keys)
		stop()
		if err != nil && !errors.Is(err, errPrinted) {
			fmt.Fprintf(s.stderr, "%s: %v\n", program, err)
		}
	}
	return nil
}

// prompt names the server, and the database that use has chosen.
func (s *shell) prompt() string {
	if s.chosen == "" {
		return s.peerName()
	}
	return s.peerName() + "/" + printable(s.chosen)
}

// errPrinted is the failure of a command that has said itself what was wrong.
var errPrinted = errors.New("failed")

// run runs a line.
func (s *shell) run(ctx context.Context, line string, stdin io.Reader) error {
	words, err := splitWords(line)
	if err != nil || len(words) == 0 {
		return err
	}
	args := words[1:]
	switch words[0] {
	case "exit", "quit":
		s.over = true
		return nil
	case "help":
		return s.help(ctx, args)
	case "use":
		return s.use(ctx, args)
	case "view":
		return s.choose(args)
	}
	if !s.knows(words[0]) {
		return fmt.Errorf("%s: unknown command%s (\"help\" lists the commands)", words[0], cli.DidYouMean(words[0], "", s.names(ownWords(), s.program.Commands)))
	}
	if s.program.Main(ctx, s.withChoices(ctx, words), stdin, s.stdout, s.stderr) != 0 {
		return fmt.Errorf("%s %w", words[0], errPrinted)
	}
	return nil
}

// withChoices adds the options that use and view stand for to those commands that take them.
// Options of the line come later and count more.
func (s *shell) withChoices(ctx context.Context, words []string) []string {
	args, takes := words[:1:1], s.optionsOf(ctx, words[0])
	if s.chosen != "" && slices.Contains(takes, "db") {
		args = append(args, "-db", s.chosen)
	}
	if s.view != "" && slices.Contains(takes, s.view) {
		args = append(args, "-"+s.view)
	}
	return append(args, words[1:]...)
}

// help lists the commands, or explains one.
func (s *shell) help(ctx context.Context, args []string) error {
	if len(args) > 0 {
		if s.knows(args[0]) {
			s.program.Main(ctx, []string{args[0], "--help"}, scriptInput{}, s.stdout, s.stderr)
			return nil
		}
		return fmt.Errorf("help: there is no command %s", args[0])
	}
	var b strings.Builder
	for _, c := range append(ownWords(), s.program.Commands...) {
		fmt.Fprintf(&b, "  %-44s %s\n", strings.TrimSpace(c.Name+" "+c.Args), c.Help)
	}
	_, err := io.WriteString(s.stdout, b.String())
	return err
}

// use chooses the database of the following commands. It must be there.
func (s *shell) use(ctx context.Context, args []string) error {
	if len(args) > 1 {
		return errors.New("use: there are too many arguments")
	}
	name := ""
	if len(args) == 1 {
		name = args[0]
	}
	if _, err := s.client.DB(name).Status(ctx); err != nil {
		return s.failed("use "+name, err)
	}
	s.chosen = name
	return nil
}

// choose chooses the view of values.
func (s *shell) choose(args []string) error {
	if len(args) == 1 {
		if option, known := views[args[0]]; known {
			s.view = option
			return nil
		}
	}
	return errors.New("view: it is one of tsv, json, hex")
}
