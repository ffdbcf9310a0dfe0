package main

import "gotycoon/tools/cli"

// defineReplication lists the options of the replication that the original has not.
func (o *options) defineReplication() {
	f, r := o.flags, &o.Replication
	f.BoolVar(&r.GapContinue, "gap-continue", false, "go on when a master of the original kind has not kept all updates that are needed, instead of stopping to replicate")
	f.Var(cli.Int(&r.CopyLimit), "copy-limit", "fetch at most this `size` per second while databases are copied from the master, 0: as much as possible")
	f.Var(cli.Int(&r.Removals), "removals", "remember at most this `number` of removals in each file with lww=true, 0: a million; older ones are forgotten")
	f.BoolVar(&r.ReadOnly, "slave-read-only", false, "refuse updates of clients, but not those of the master; tunerepl -rw ends it")
}
