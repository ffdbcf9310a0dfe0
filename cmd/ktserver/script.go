package main

import "gotycoon/tools/cli"

// defineScript lists the options of the server's script.
func (o *options) defineScript() {
	f, s := o.flags, &o.Script
	f.StringVar(&s.Path, "scr", "", "let clients call the functions of a Lua `file`; see docs/lua.md")
	f.Var(cli.Duration(&s.Time), "scrtime", "end a call of the script that takes longer than so many seconds")
	f.Var(cli.Int(&s.Memory), "scrmem", "end a call of the script whose interpreter holds on to more than this `size`")
}
