package main

// defineAccess lists the options about who may do what.
func (o *options) defineAccess() {
	o.flags.StringVar(&o.Access.Path, "access", "", "let in whom this `file` names; without it and -host only clients on this machine; see docs/security.md")
}
