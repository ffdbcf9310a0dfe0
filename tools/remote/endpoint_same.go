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
func (l life) same(other life) bool { return l.within(other, 1e-3) }

// nearly reports whether two reports may be of one process whose clocks were read late.
func (l life) nearly(other life) bool { return l.within(other, 1) }

func (l life) within(other life, seconds float64) bool {
	return l.process != 0 && l.process == other.process && l.databases == other.databases && math.Abs(l.begin-other.begin) < seconds
}
