package server

// stack is the parts that are open, in the order in which they were opened. unwind closes them in
// reverse order: on the way out of a server that has served as well as after a part that could not
// be opened, so that there is one stop order, and no path on which a part is forgotten.
//
// The problem is that the stop order is not quite the reverse of the order in which a server does
// its work at the start. Two examples:
//
//   - The PID file is written when everything has opened, because scripts wait for the file. It is
//     removed before the databases are closed, because closing may take minutes, and a script that
//     finds no file takes the server for stopped as far as clients are concerned.
//   - Databases in memory are kept in a last snapshot, after the last update and before they are
//     closed. Nothing is opened there.
//
// The rule is that a part has its place in the stop order, and becomes active when it likes:
// timers, for example, are on the stack before the follower, because they run while it is closed,
// and begin after the services have opened. A part that has its place and is not active yet closes
// without an effect.
//
// The stop order, which is the reverse of root.parts:
//
//	data port and memcached port     no more requests; those in execution are finished
//	console and metrics              nobody looks at databases and services any more
//	snapshots in the background
//	services                         the last service first
//	memcached                        a plug-in that has not run makes the exit code 1
//	script                           calls end, open transactions are aborted
//	follower                         its position is saved
//	timers, room
//	PID file
//	last snapshots                   nobody changes the databases any more
//	databases, update log            the last checkpoint of each, in the order of the command line
//	[FINISH]
//	admin listener, access, TLS      they answer probes, and heed their files, until the end
//
// A list of deferred calls in one function would do the same for one path. It was rejected, because
// the calls could be neither tested one by one nor printed, and because the places of the PID file,
// the timers and the last snapshots would have to be told by the order of unrelated lines.
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
