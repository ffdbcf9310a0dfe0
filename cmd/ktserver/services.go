package main

import "gotycoon/tools/cli"

// defineServices lists the options of the protocols with ports of their own.
func (o *options) defineServices() {
	f, s := o.flags, &o.Services
	f.Var(integer(&s.CounterPort), "counter-port", "serve counters on this port, as yrmcds does")
	f.Var(integer(&s.CounterConns), "counter-max-connections", "their connections at most, 0: any number")
	f.Var(integer(&s.CounterBuckets), "counter-buckets", "size of their hash table (default 1000000)")
	f.Var(cli.Duration(&s.CounterInterval), "counter-stats-interval", "measure their maxima within so many seconds (default 86400)")
	f.Var(integer(&s.LockPort), "lock-port", "serve locks on this port, as JESync does")
	f.Var(cli.Duration(&s.LockTTL), "lock-max-ttl", "longest time in seconds that a lock is held without renewal")
	f.Var(integer(&s.LockKeys), "lock-max-keys", "keys that can be locked at a time (default 1000000)")
	f.Var(integer(&s.LockWaiters), "lock-max-waiters", "requests that can wait at a time (default 100000)")
	f.BoolVar(&s.LockStrict, "lock-strict", false, "let no request for a lock overtake one that waits")
	f.Var(integer(&s.SequencePort), "sequence-port", "give out sequence numbers on this port, as coconut does")
	f.Var(integer(&s.Reserve), "sequence-reserve", "their reserve field, 0 to 63")
	f.Var(integer(&s.ServerNo), "sequence-server-no", "their server_no field, 0 to 4095: no two servers may have the same")
	f.Var(integer(&s.QuotaPort), "quota-port", "manage quotas on this port, as coconut does")
	f.Var(cli.Int(&s.Limit), "quota-limit", "`amount` of the quota when it is used for the first time")
	f.StringVar(&s.Export, "quota-export", "", "write the journals of the quota to this `file` whenever it is used up")
	f.StringVar(&s.Database, "services", "", "`database` file in which locks, sequences and quotas keep their state, or a copy of the master's (default services.kct)")
}
