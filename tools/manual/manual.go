// Package manual writes a program's options in other forms than the usage text: a manual page, and
// completion for shells. All of them come from the same tables, so none can be out of date.
package manual

import (
	"bufio"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/pflag"
)

// Program is a command line program: one with sub-commands, or one with options of its own.
type Program struct {
	Name     string
	About    string         // what it is, in half a sentence
	Args     string         // arguments behind the options
	Options  *pflag.FlagSet // nil: none of its own
	Commands []Command
	Words    []Command // further first arguments, which have no options
	Notes    []Section // for the manual page
	See      []string  // names of other pages of section 1
}

// Command is a sub-command.
type Command struct {
	Name    string
	Args    string // arguments behind its options
	Help    string // what it does, without a full stop
	Options *pflag.FlagSet
}

// Section is a chapter of the manual page.
type Section struct {
	Title string
	Text  []string // paragraphs
}

// option is what is shown of a flag.
type option struct {
	name  string
	value string // what stands for its value; empty: it has none
	help  string
}

// options returns the options that are not hidden, in the order of their definition.
func options(f *pflag.FlagSet) []option {
	if f == nil {
		return nil
	}
	var found []option
	f.VisitAll(func(flag *pflag.Flag) {
		if flag.Hidden {
			return
		}
		value, help := pflag.UnquoteUsage(flag)
		found = append(found, option{flag.Name, value, help})
	})
	return found
}

// Page writes the manual page of section 1, in the macros that man and mandoc read.
func (p *Program) Page(w io.Writer) error {
	b := &page{bufio.NewWriter(w)}
	b.line(".TH %s 1 \"\" gotycoon", strings.ToUpper(p.Name))
	b.section("NAME")
	b.line("%s \\- %s", escape(p.Name), escape(p.About))
	b.section("SYNOPSIS")
	p.synopsis(b)
	b.section("DESCRIPTION")
	b.line("Options may have one dash or two, and come before the first argument. A value follows as the next word or behind an equals sign.")
	b.line("Sizes may end in k, m, g, t, p or e: powers of 1024.")
	for _, c := range append(p.Commands, p.Words...) {
		b.line(".SS %s", quoted(strings.TrimSpace(p.Name+" "+c.Name+" "+c.Args)))
		b.line("%s.", sentence(c.Help))
		b.options(options(c.Options))
	}
	if p.Options != nil {
		b.section("OPTIONS")
		b.options(options(p.Options))
	}
	p.notes(b)
	return b.Flush()
}

func (p *Program) synopsis(b *page) {
	usage := p.Name + " [option ...] " + p.Args
	if p.Commands != nil {
		usage = p.Name + " command [option ...] [argument ...]"
	}
	b.line("%s", escape(strings.TrimSpace(usage)))
	b.line(".br")
	b.line("%s version", escape(p.Name))
}

func (p *Program) notes(b *page) {
	for _, n := range p.Notes {
		b.section(n.Title)
		for i, text := range n.Text {
			if i > 0 {
				b.line(".PP")
			}
			b.line("%s", escape(text))
		}
	}
	b.section("SEE ALSO")
	pages := make([]string, len(p.See))
	for i, name := range p.See {
		pages[i] = fmt.Sprintf(".BR %s (1)", escape(name))
	}
	b.line("%s", strings.Join(pages, " ,\n"))
}

// page collects lines. Errors are those of Flush.
type page struct{ *bufio.Writer }

func (b *page) line(format string, args ...any) { fmt.Fprintf(b, format+"\n", args...) }

func (b *page) section(title string) { b.line(".SH %s", quoted(title)) }

func (b *page) options(found []option) {
	for _, o := range found {
		b.line(".TP")
		b.line("%s", strings.TrimSpace("\\fB\\-"+escape(o.name)+"\\fR "+italic(o.value)))
		b.line("%s", escape(sentence(o.help)+"."))
	}
}

func italic(s string) string {
	if s == "" {
		return ""
	}
	return `\fI` + escape(s) + `\fR`
}

func quoted(s string) string { return `"` + strings.ReplaceAll(escape(s), `"`, `\(dq`) + `"` }

func sentence(s string) string {
	if s == "" {
		return s
	}
	return strings.ToUpper(s[:1]) + s[1:]
}

// escape keeps text from being taken for a request or an escape, and dashes from becoming
// typographic ones.
func escape(s string) string {
	s = strings.NewReplacer(`\`, `\e`, "-", `\-`).Replace(s)
	if strings.HasPrefix(s, ".") || strings.HasPrefix(s, "'") {
		return `\&` + s
	}
	return s
}
