package httpapi

import (
	"errors"
	"fmt"
	"io/fs"
	"math"

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

// rpcUlogRemove removes the files of the update log that hold nothing newer than ts; the newest file always stays.
func rpcUlogRemove(s *Session) error {
	if s.h.opts.Catalog.Log() == nil {
		return errNoLog
	}
	err := s.h.opts.Catalog.RemoveLogFiles(s.upTo())
	var path *fs.PathError
	if errors.As(err, &path) {
		return fmt.Errorf("%w: %s", errRemoveLog, path.Path)
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
	return ulog.Stamp(max(parseInt(text), 0))
}
