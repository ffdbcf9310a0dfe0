package main

// defineAccess lists the options about who may do what.
func (o *options) defineAccess() {
	o.flags.StringVar(&o.Access.Path, "access", "", "let in whom this `file` names; without it and -host only clients on this machine; see docs/security.md")
	o.flags.StringVar(&o.Access.Hosts, "http-hosts", "", "more `names` of this server, with commas, for browsers, and hosts whose pages may send it requests; * for all")
}
