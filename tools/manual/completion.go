package manual

import (
	"bufio"
	"fmt"
	"io"
	"strings"
)

// Shells are the shells that Completion knows.
func Shells() []string { return []string{"bash", "zsh", "fish"} }

// Completion writes what a shell reads to complete the program's sub-commands, options and files.
func (p *Program) Completion(w io.Writer, shell string) error {
	b := bufio.NewWriter(w)
	switch shell {
	case "bash":
		p.bash(b)
	case "zsh":
		p.zsh(b)
	case "fish":
		p.fish(b)
	default:
		return fmt.Errorf("there is no completion for %q: it must be one of %s", shell, strings.Join(Shells(), ", "))
	}
	return b.Flush()
}

// words are the first arguments that are no options.
func (p *Program) words() []Command { return append(append([]Command{}, p.Commands...), p.Words...) }

func names[T any](list []T, name func(T) string) string {
	all := make([]string, len(list))
	for i, e := range list {
		all[i] = name(e)
	}
	return strings.Join(all, " ")
}

func commandName(c Command) string { return c.Name }
func dashed(o option) string       { return "-" + o.name }

func (p *Program) bash(w io.Writer) {
	fmt.Fprintf(w, "# bash completion of %s\n_%[1]s() {\n\tlocal cur=${COMP_WORDS[COMP_CWORD]} words=''\n", p.Name)
	fmt.Fprintf(w, "\tif [[ $COMP_CWORD -eq 1 && $cur != -* ]]; then\n\t\twords='%s'\n\telse\n\t\tcase ${COMP_WORDS[1]} in\n", names(p.words(), commandName))
	for _, c := range p.Commands {
		fmt.Fprintf(w, "\t\t%s) words='%s' ;;\n", c.Name, names(options(c.Options), dashed))
	}
	fmt.Fprintf(w, "\t\t*) words='%s' ;;\n\t\tesac\n\t\t[[ $cur == -* ]] || words=''\n\tfi\n", names(options(p.Options), dashed))
	fmt.Fprintf(w, "\tmapfile -t COMPREPLY < <(compgen -W \"$words\" -- \"$cur\")\n}\ncomplete -o default -F _%s %[1]s\n", p.Name)
}

func (p *Program) zsh(w io.Writer) {
	others := "_files"
	if p.Commands != nil {
		others = ":"
	}
	fmt.Fprintf(w, "#compdef %s\n_%[1]s() {\n\tlocal -a choices\n", p.Name)
	fmt.Fprintf(w, "\tif (( CURRENT == 2 )) && [[ $PREFIX != -* ]]; then\n\t\tchoices=(%s)\n", described(p.words()))
	fmt.Fprintf(w, "\t\t_describe command choices\n\t\t%s\n\t\treturn\n\tfi\n\tcase $words[2] in\n", others)
	for _, c := range p.Commands {
		fmt.Fprintf(w, "\t%s) choices=(%s) ;;\n", c.Name, describedOptions(options(c.Options)))
	}
	fmt.Fprintf(w, "\t*) choices=(%s) ;;\n\tesac\n", describedOptions(options(p.Options)))
	fmt.Fprintf(w, "\tif [[ $PREFIX == -* ]]; then\n\t\t_describe -o option choices\n\telse\n\t\t_files\n\tfi\n}\n")
	fmt.Fprintf(w, "if [[ $zsh_eval_context[-1] == loadautofunc ]]; then\n\t_%s \"$@\"\nelse\n\tcompdef _%[1]s %[1]s\nfi\n", p.Name)
}

// described returns names with explanations as _describe of zsh takes them.
func described(cmds []Command) string {
	return names(cmds, func(c Command) string { return single(c.Name + ":" + c.Help) })
}

func describedOptions(found []option) string {
	return names(found, func(o option) string { return single("-" + o.name + ":" + strings.ReplaceAll(o.help, ":", `\:`)) })
}

func (p *Program) fish(w io.Writer) {
	fmt.Fprintf(w, "# fish completion of %s\n", p.Name)
	for _, c := range p.words() {
		fmt.Fprintf(w, "complete -c %s -n __fish_is_first_token -f -a %s -d %s\n", p.Name, c.Name, single(c.Help))
	}
	for _, c := range p.Commands {
		fishOptions(w, fmt.Sprintf("complete -c %s -n '__fish_seen_subcommand_from %s'", p.Name, c.Name), c)
	}
	fishOptions(w, "complete -c "+p.Name, Command{Options: p.Options})
}

func fishOptions(w io.Writer, begin string, c Command) {
	for _, o := range options(c.Options) {
		needs := ""
		if o.value != "" {
			needs = " -r"
		}
		fmt.Fprintf(w, "%s -o %s%s -d %s\n", begin, o.name, needs, single(o.help))
	}
}

// single quotes a word for all three shells.
func single(s string) string {
	return "'" + strings.NewReplacer(`\`, "", "'", "’").Replace(s) + "'"
}
