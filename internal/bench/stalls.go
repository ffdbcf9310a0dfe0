//go:build linux

package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"
)

// Stalls are times in which the machine itself stands still: no program can run on a processor,
// because the host of a virtual machine has given it to somebody else, or because the system is in
// the middle of something that it does not interrupt. A wait that is no longer than the longest
// stall of its time may have been one.
//
// On each processor a thread with real-time priority sleeps for stallSleep and looks how late it
// wakes. No other program can make it late, so the machine has.
//
//	thread   sleep 2 ms │ sleep 2 ms │ sleep 2 ms ......................... 47 ms late
//	host     ours         ours         ours     │ somebody else's          │ ours
//
// The threads have a process of their own (-stalls): in a program that is busy, Go lets a thread
// that wakes wait for others.
const stallSleep = 2 * time.Millisecond

// stalls is the process that looks for stalls.
type stalls struct {
	cmd *exec.Cmd
	in  io.WriteCloser
	out bytes.Buffer
}

// watchStalls begins to look for stalls of all processors.
func watchStalls() (*stalls, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	s := &stalls{cmd: exec.Command(self, "-stalls")}
	s.cmd.Stdout = &s.out
	if s.in, err = s.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	return s, s.cmd.Start()
}

// end ends the watch. It returns the longest stall, and whether anybody could look: not everybody
// may have threads with real-time priority.
func (s *stalls) end() (longest time.Duration, known bool) {
	_ = s.in.Close() // which tells the process to end
	if s.cmd.Wait() != nil {
		return 0, false
	}
	ms, err := strconv.ParseFloat(string(bytes.TrimSpace(s.out.Bytes())), 64)
	return time.Duration(ms * float64(time.Millisecond)), err == nil
}

// printStalls looks for stalls until in ends, and prints the longest one in milliseconds.
func printStalls(in io.Reader, out io.Writer) error {
	var may unix.CPUSet
	if err := unix.SchedGetaffinity(0, &may); err != nil {
		return err
	}
	var cpus []int
	for cpu := 0; len(cpus) < may.Count(); cpu++ {
		if may.IsSet(cpu) {
			cpus = append(cpus, cpu)
		}
	}
	var ended atomic.Bool
	var all sync.WaitGroup
	longest, errs := make([]time.Duration, len(cpus)), make([]error, len(cpus))
	for n, cpu := range cpus {
		all.Go(func() { longest[n], errs[n] = stallsOf(cpu, &ended) })
	}
	_, err := io.Copy(io.Discard, in)
	ended.Store(true)
	all.Wait()
	if err := errors.Join(append(errs, err)...); err != nil {
		return err
	}
	_, err = fmt.Fprintf(out, "%.2f\n", slices.Max(longest).Seconds()*1e3)
	return err
}

// stallsOf returns the longest stall of a processor until ended is set.
func stallsOf(cpu int, ended *atomic.Bool) (longest time.Duration, err error) {
	runtime.LockOSThread() // for good: a thread that has become another one ends with its goroutine
	var one unix.CPUSet
	one.Set(cpu)
	if err := unix.SchedSetaffinity(0, &one); err != nil {
		return 0, fmt.Errorf("thread on processor %d: %w", cpu, err)
	}
	const lowest = 1
	if err := unix.SchedSetAttr(0, &unix.SchedAttr{Policy: unix.SCHED_FIFO, Priority: lowest}, 0); err != nil {
		return 0, fmt.Errorf("real-time priority: %w", err)
	}
	for pause := unix.NsecToTimespec(int64(stallSleep)); !ended.Load(); {
		began := time.Now()
		if unix.Nanosleep(&pause, nil) == nil { // else a signal has ended it
			longest = max(longest, time.Since(began)-stallSleep)
		}
	}
	return longest, nil
}
