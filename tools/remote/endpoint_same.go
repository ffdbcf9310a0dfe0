package remote

import (
	"math"
	"strconv"
	"strings"

	"gotycoon/client"
)

// life is what a report tells about a server's process. A row that the server does not have is 0.
type life struct {
	process   int64
	begin     float64 // in seconds since 1970
	databases string
}

func lifeOf(rows client.Rows) life {
	l := life{process: rows.Int("serv_proc_id")}
	now, _ := strconv.ParseFloat(string(rows["serv_current_time"]), 64) // 0
	term, _ := strconv.ParseFloat(string(rows["serv_running_term"]), 64)
	l.begin = now - term
	l.databases = strings.Join(databaseNames(rows), "\n")
	return l
}

// same reports whether two reports are of one process. The number of the process is not enough: in
// containers it is always 1.
func (l life) same(other life) bool {
	// The two clocks of a report are read one after the other, on a machine that may be busy. To
	// take two servers for one refuses a migration; to take one for two may clear what was to be
	// copied.
	const precision = 20e-3
	return l.process != 0 && l.process == other.process && l.databases == other.databases && math.Abs(l.begin-other.begin) < precision
}
