package main

// defineAdmin lists the options of the admin listener.
func (o *options) defineAdmin() {
	f, a := o.flags, &o.Admin
	f.StringVar(&a.Addr, "admin", "", "serve metrics, probes and profiles by HTTP on this `address`, HOST:PORT")
}
