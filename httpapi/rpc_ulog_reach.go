package httpapi

import (
	"encoding/hex"

	"gotycoon/internal/lenient"
	"gotycoon/ulog"
)

// rpcUlogReach tells a program that follows the update log, and has seen it up to the time stamp ts, whether everything newer is
// still there: gap is 1 where some of it has been removed or may have been, and id names the log, which is another one after the
// server was given a new directory. The original does not know the procedure.
func rpcUlogReach(s *Session) error {
	log := s.h.opts.Catalog.Log()
	if log == nil {
		return errNoLog
	}
	text, err := s.param("ts")
	if err != nil {
		return err
	}
	r, err := log.NewReader(ulog.Stamp(max(lenient.Int(text), 0)))
	if err != nil {
		return err
	}
	defer r.Close()
	id := log.ID()
	gap := int64(0)
	if r.Lost() != nil { // a reader that was just opened knows; later gaps cut the stream that the program follows
		gap = 1
	}
	s.outInt("gap", gap)
	s.outText("id", hex.EncodeToString(id[:]))
	return nil
}
