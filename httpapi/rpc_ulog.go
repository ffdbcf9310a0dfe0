package httpapi

import (
	"errors"
	"fmt"
	"math"

	"gotycoon/internal/lenient"
	"gotycoon/ulog"
)

// rpcUlogList lists the files of the update log, each with its size and its newest time stamp.
func rpcUlogList(s *Session) error {
	if s.h.opts.Catalog.Log() == nil {
		return errNoLog
	}
	files, err := s.h.opts.Catalog.LogFiles()
	if err != nil {
		return err
	}
	for _, f := range files {
		s.outText(f.Path, fmt.Sprintf("%d:%d", f.Size, f.Last))
	}
	s.out.Sort()
	return nil
}

// rpcUlogRemove removes the files of the update log that hold nothing newer than ts, and that nobody needs; the newest file always stays.
func rpcUlogRemove(s *Session) error {
	if s.h.opts.Catalog.Log() == nil {
		return errNoLog
	}
	err := s.h.opts.Catalog.RemoveLogFiles(s.upTo())
	if e, ok := errors.AsType[*ulog.RemoveError](err); ok {
		return fmt.Errorf("%w: %s", errRemoveLog, e.Path)
	}
	return err
}

func (s *Session) upTo() ulog.Stamp {
	text, ok := s.in.Get("ts")
	switch {
	case !ok:
		return math.MaxUint64
	case string(text) == "now":
		return ulog.StampAt(s.h.opts.Now())
	}
	return ulog.Stamp(max(lenient.Int(text), 0))
}
