package main

import "gotycoon/tools/cli"

// defineLimits lists the options of what clients may use, and of what happens when memory or disk are short.
func (o *options) defineLimits() {
	f, l := o.flags, &o.Limits
	f.Var(integer(&l.Conns), "max-connections", "connections of each port at most, 0: what memory and open files allow")
	f.Var(cli.Int(&l.Request), "max-request", "refuse requests larger than this `size`, 0: what each protocol allows")
	f.Var(cli.Int(&l.InFlight), "max-inflight", "`size` that the requests of all connections may hold together, unread replies included, 0: three eighths of the memory that the process may have")
	f.Var(cli.Duration(&l.RequestTime), "request-time", "end a request that takes longer than so many seconds to arrive, and one more for each KiB (large ones: ten minutes more at most); 0: never (default 60)")
	f.Var(cli.Duration(&l.AnswerTime), "answer-time", "end a search, a script's call or the like that takes longer than so many seconds; 0: never (default 300)")
	f.Var(cli.Duration(&l.Idle), "idle", "end a connection that sends no request for so many seconds, 0: never (default 0)")
	f.Var(cli.Int(&l.Memory), "memory", "refuse what makes records in memory grow, and large requests, when the process takes this `size`, 0: four fifths of what its control group allows")
	f.Var(cli.Int(&l.MaxSize), "max-size", "refuse what makes databases grow when their records take this `size`")
	f.Var(cli.Int(&l.MinFree), "min-free", "refuse all but removals when the disk has less than this `size` left, or a sixteenth of it (default 64m)")
	o.note(sectionNote, "limits", "max-connections", "max-request", "max-inflight", "request-time", "answer-time", "idle", "memory", "max-size", "min-free")
	o.note(reloadNote, "yes", "max-request", "max-inflight", "request-time", "answer-time", "idle", "memory", "max-size", "min-free")
}
