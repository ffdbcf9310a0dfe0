package pgserver

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// CPU returns the processor time that the server's processes have taken so far, those included that
// have ended. It is for benchmarks on Linux.
func (s *Server) CPU() (time.Duration, error) {
	for {
		before, err := s.ended()
		if err != nil {
			return 0, err
		}
		running, err := s.running()
		if err != nil {
			return 0, err
		}
		after, err := s.ended()
		if err != nil {
			return 0, err
		}
		if before == after { // or some would be counted twice, or not at all
			return running + after, nil
		}
	}
}

// Fields of /proc/PID/stat behind the name: the parent, then times in hundredths of a second.
const (
	statParent = 1
	statOwn    = 11 // the user's, and in the next field the system's
	statEnded  = 13 // the same of children that have ended
)

// stat returns the fields of a process.
func stat(pid string) ([]string, error) {
	raw, err := os.ReadFile(filepath.Join("/proc", pid, "stat"))
	if err != nil {
		return nil, err
	}
	return strings.Fields(string(raw[strings.LastIndexByte(string(raw), ')')+1:])), nil
}

// ticks returns the sum of two fields.
func ticks(fields []string, at int) (time.Duration, error) {
	u, err := strconv.Atoi(fields[at])
	if err != nil {
		return 0, fmt.Errorf("a time of a process: %w", err)
	}
	v, err := strconv.Atoi(fields[at+1])
	if err != nil {
		return 0, fmt.Errorf("a time of a process: %w", err)
	}
	return time.Duration(u+v) * 10 * time.Millisecond, nil
}

// ended returns the time of processes that have ended.
func (s *Server) ended() (time.Duration, error) {
	fields, err := stat(strconv.Itoa(s.PID()))
	if err != nil {
		return 0, err
	}
	return ticks(fields, statEnded)
}

// running returns the time of the processes that run.
func (s *Server) running() (sum time.Duration, err error) {
	all, err := filepath.Glob("/proc/[0-9]*")
	if err != nil {
		return 0, err
	}
	own := strconv.Itoa(s.PID())
	for _, path := range all {
		pid := filepath.Base(path)
		fields, err := stat(pid)
		if err != nil || pid != own && fields[statParent] != own {
			continue // it has ended, or is none of ours
		}
		t, err := ticks(fields, statOwn)
		if err != nil {
			return 0, err
		}
		sum += t
	}
	return sum, nil
}
