package server

import (
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"gotycoon/internal/netio"
)

var errNoFigures = errors.New("the system does not tell how long threads wait for a core")

// cores are figures of the system; times are sums since the start.
type cores struct {
	ran    time.Duration // what the threads of the server have run
	awake  time.Duration // of that, what leaders of loops have waited awake for news
	slept  time.Duration // what leaders of loops have waited for the disk
	synced time.Duration // what loops have waited for the disk with most of their work (netio.Syncing)
	waited time.Duration // what they have stood in line for a core
	idle   time.Duration // what no process has used, of all cores
	busy   int           // threads of all processes that run or stand in line at the moment
	served uint64        // connections that loops have served, each as often as it had requests
}

// figuresWith returns a function that reads the figures of the system, and those that only the
// loops know.
func figuresWith(loops func() *netio.Loops) func() (cores, error) {
	return func() (cores, error) {
		sum, err := readCores("/proc")
		all := loops()
		sum.awake, sum.served = all.Awake(), all.Served()
		syncs := all.Syncing()
		sum.slept, sum.synced = syncs.Slept, syncs.Most
		return sum, err
	}
}

// readCores adds up the figures of the system below proc, which is /proc.
//
//	self/task/ID/schedstat   2160403 91245 44        a thread has run and waited for so many ns
//	stat                     cpu  4705 0 2512 13620  user, nice, system, idle, …, in 1/100 s
//	                         procs_running 3         threads that run or stand in line
func readCores(proc string) (cores, error) {
	const tick = time.Second / 100 // USER_HZ, whatever the kernel's own rate is
	tasks := filepath.Join(proc, "self/task")
	threads, err := os.ReadDir(tasks) // a glob would read the directory of each thread
	if err != nil || len(threads) == 0 {
		return cores{}, errNoFigures
	}
	var sum cores
	for _, thread := range threads {
		text, err := os.ReadFile(filepath.Join(tasks, thread.Name(), "schedstat"))
		if os.IsNotExist(err) {
			continue // the thread has ended
		}
		ran, waited := number(text, 0), number(text, 1)
		if err != nil || ran < 0 || waited < 0 {
			return cores{}, errNoFigures
		}
		sum.ran += time.Duration(ran)
		sum.waited += time.Duration(waited)
	}
	const idleField = 4
	text, err := os.ReadFile(filepath.Join(proc, "stat"))
	_, rest, _ := strings.Cut(string(text), "\nprocs_running ")
	idle, busy := number(text, idleField), number([]byte(rest), 0)
	if err != nil || idle < 0 || busy < 0 {
		return cores{}, errNoFigures
	}
	sum.idle, sum.busy = time.Duration(idle)*tick, int(busy)
	return sum, nil
}

// number returns a number of the first line of a text, -1 if there is none.
func number(text []byte, field int) int64 {
	line, _, _ := strings.Cut(string(text), "\n")
	fields := strings.Fields(line)
	if field >= len(fields) {
		return -1
	}
	n, err := strconv.ParseInt(fields[field], 10, 64)
	if err != nil {
		return -1
	}
	return n
}
