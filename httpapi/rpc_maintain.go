package httpapi

import "gotycoon/ulog"

func rpcClear(s *Session) error { return s.call.db.Clear(&s.c.Owed) }

// rpcVacuum collects expired records: step units of them, or all when step is 1 or less.
func rpcVacuum(s *Session) error {
	if err := s.beginLong(); err != nil {
		return err
	}
	return s.call.db.Vacuum(s.heed, s.intOr("step", 0))
}

// rpcSynchronize writes the database to its file and then runs a command, if one is given. Earlier replies leave
// first, because it may take long.
func rpcSynchronize(s *Session) error {
	if s.c.Flush() != nil {
		return errBroken
	}
	var post func(path string, ts ulog.Stamp) error
	if name, _ := s.in.Get("command"); len(name) > 0 {
		command, limit := string(name), s.h.positionLimit()
		post = func(path string, ts ulog.Stamp) error { return s.h.runCommand(command, path, min(ts, limit)) }
	}
	return s.call.db.Synchronize(s.in.Has("hard"), post)
}
