package server

// stack is the parts that are open, in the order in which they were opened. unwind closes them in
// reverse order, both when a server has served and when a part could not be opened: so there is one
// stop order, and no path forgets a part.
//
// The problem is that the stop order is not quite the reverse of the order in which the parts begin
// to work. Three examples:
//
//   - The PID file is written last at the start, when everything is open, because scripts wait for
//     the file. In the reverse order it would be removed first, while the databases still work.
//   - The timers begin when the services are open, but run until the follower is closed: otherwise
//     updates of a master could fill the disk after the last look at it.
//   - The last snapshots are taken between the last update and the close of the databases. At the
//     start there is nothing to do in their place.
//
// The rule is that a part is opened in the place that it has in the stop order, and begins its work
// later where it has to. Closing a part that has not begun its work has no effect.
//
// The stop order, which is the reverse of root.parts:
//
//	data port and memcached port     no more requests; those in execution are finished
//	console and metrics              nobody looks at databases and services any more
//	snapshots in the background
//	services                         the last service first
//	memcached                        a plug-in that has not run makes the exit code 1
//	script                           calls end, open transactions are aborted
//	standing                         the command of -on-role has ended
//	follower                         its position is saved
//	timers, room
//	PID file
//	last snapshots                   nobody changes the databases any more
//	databases, update log            the last checkpoint of each, in the order of the command line
//	[FINISH]
//	admin listener, access, TLS      they answer probes, and heed their files, until the end
//
// Deferred calls in one function were rejected: they could not be tested one by one, and only the
// order of unrelated lines would say when the PID file, the timers and the last snapshots end.
type stack struct {
	parts  []part
	closed func(name string) // hears of each part that has been closed; nil: nobody
}

// part is something that a server opens and closes.
type part struct {
	name  string
	open  func() error // nil: there is nothing to do
	close func() bool  // reports whether all went well; nil: there is nothing to do
}

// push adds a part that is open.
func (s *stack) push(p part) { s.parts = append(s.parts, p) }

// unwind closes the parts in reverse order. A part that cannot be closed keeps none of the others
// open. unwind reports whether all went well.
func (s *stack) unwind() (ok bool) {
	ok = true
	for i := len(s.parts) - 1; i >= 0; i-- {
		p := s.parts[i]
		if p.close != nil {
			ok = p.close() && ok
		}
		if s.closed != nil {
			s.closed(p.name)
		}
	}
	s.parts = nil
	return ok
}

// quietly makes a function that cannot fail the close of a part.
func quietly(f func()) func() bool {
	return func() bool {
		f()
		return true
	}
}
