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
	// Fields of /proc/PID/stat behind the name: the parent, then times in hundredths of a second.
	const parent, user, system, childrensUser, childrensSystem = 1, 11, 12, 13, 14
	ticks, own := 0, strconv.Itoa(s.PID())
	all, err := filepath.Glob("/proc/[0-9]*")
	if err != nil {
		return 0, err
	}
	for _, path := range all {
		raw, err := os.ReadFile(filepath.Join(path, "stat"))
		if err != nil {
			continue // it has ended: its parent counts it
		}
		f := strings.Fields(string(raw[strings.LastIndexByte(string(raw), ')')+1:]))
		fields := []int{user, system}
		switch own {
		case filepath.Base(path):
			fields = append(fields, childrensUser, childrensSystem)
		case f[parent]:
		default:
			continue
		}
		for _, i := range fields {
			n, err := strconv.Atoi(f[i])
			if err != nil {
				return 0, fmt.Errorf("%s/stat: %w", path, err)
			}
			ticks += n
		}
	}
	return time.Duration(ticks) * 10 * time.Millisecond, nil
}
