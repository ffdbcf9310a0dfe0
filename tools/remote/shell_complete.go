package remote

import (
	"context"
	"io"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"gotycoon/tools/cli"
)

const (
	// completionTime is how long a Tab may take. A database without an order is searched for keys
	// until then.
	completionTime = 500 * time.Millisecond
	// mostChoices is the number of keys that are asked for.
	mostChoices = 40
)

// withKeys is the commands whose arguments are keys, or begin as keys do.
var withKeys = []string{"get", "set", "remove", "list", "ttl", "touch", "getbulk", "removebulk", "setbulk", "match", "bigkeys"}

// complete completes the last word of a line up to the cursor. choices is what the word may become.
func (s *shell) complete(ctx context.Context, line string) (longer string, choices []string) {
	words := wordsOf(line)
	last := word{begin: len(line)} // a new word, unless the line ends within one
	if n := len(words); n > 0 && (!strings.HasSuffix(line, " ") && !strings.HasSuffix(line, "\t") || words[n-1].open != 0) {
		last, words = words[n-1], words[:n-1]
	}
	var texts []string
	for _, w := range words {
		texts = append(texts, w.text)
	}
	ctx, cancel := context.WithTimeout(ctx, completionTime)
	defer cancel()
	for _, choice := range s.choices(ctx, texts, last.text) {
		if strings.HasPrefix(choice, last.text) {
			choices = append(choices, choice)
		}
	}
	if len(choices) == 0 {
		return line, nil
	}
	slices.Sort(choices)
	if common := commonPrefix(choices[0], choices[len(choices)-1]); len(common) > len(last.text) || len(choices) == 1 {
		line = line[:last.begin] + quoteWord(common)
	}
	switch {
	case len(choices) == 1:
		line += " "
	case strings.HasSuffix(line, `"`) && last.open == 0 && line[last.begin] == '"':
		line = strings.TrimSuffix(line, `"`) // the word goes on
	}
	return line, choices
}

// choices returns what a word that begins with prefix may be, behind other words.
func (s *shell) choices(ctx context.Context, before []string, prefix string) []string {
	if len(before) == 0 {
		return s.names(ownWords(), s.program.Commands)
	}
	name := before[0]
	switch {
	case name == "help" && len(before) == 1:
		return s.names(s.program.Commands)
	case name == "view" && len(before) == 1:
		return []string{"hex", "json", "tsv"}
	case name == "use" && len(before) == 1, before[len(before)-1] == "-db":
		return s.databases(ctx)
	case strings.HasPrefix(prefix, "-"):
		var dashed []string
		for _, option := range s.optionsOf(ctx, name) {
			dashed = append(dashed, "-"+option)
		}
		return dashed
	case slices.Contains(withKeys, name):
		return s.keys(ctx, before[1:], prefix)
	}
	return nil
}

func (s *shell) names(tables ...[]cli.Command[*call]) (all []string) {
	for _, table := range tables {
		for _, c := range table {
			all = append(all, c.Name)
		}
	}
	return all
}

// optionsOf returns the options of a command. A run with --help defines them and does nothing else.
func (s *shell) optionsOf(ctx context.Context, name string) []string {
	if known, ok := s.options[name]; ok {
		return known
	}
	var found []string
	for _, cmd := range s.program.Commands {
		if cmd.Name == name {
			c := newCall(name, []string{"--help"}, strings.NewReader(""), io.Discard, io.Discard)
			_ = c.End(cmd.Run(ctx, c)) // it is pflag.ErrHelp
			c.flags.VisitAll(func(f *pflag.Flag) { found = append(found, f.Name) })
		}
	}
	s.options[name] = found
	return found
}

// databases returns the names and numbers of the server's databases; nothing when the server does
// not tell them.
func (s *shell) databases(ctx context.Context) []string {
	now, err := s.sample(ctx)
	if err != nil {
		return nil
	}
	var all []string
	for i, d := range now.databases() {
		all = append(all, strconv.Itoa(i), path.Base(d.path))
	}
	return all
}

// keys returns keys that begin with prefix, of the database that the line is about; nothing when
// the server does not tell them in time.
func (s *shell) keys(ctx context.Context, options []string, prefix string) []string {
	db := s.chosen
	if i := slices.Index(options, "-db"); i >= 0 && i+1 < len(options) {
		db = options[i+1]
	}
	if prefix == "" {
		return nil
	}
	keys, err := s.client.DB(db).MatchPrefix(ctx, prefix, mostChoices)
	if err != nil {
		return nil
	}
	return keys
}

// commonPrefix returns how two texts begin alike.
func commonPrefix(a, b string) string {
	n := 0
	for n < len(a) && n < len(b) && a[n] == b[n] {
		n++
	}
	return a[:n]
}
