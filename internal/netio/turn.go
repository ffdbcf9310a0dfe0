package netio

import (
	"os"
	"runtime"
	"runtime/metrics"
	"sync"
	"syscall"
	"time"

	"gotycoon/internal/rawio"
)

// Turns.
//
// # The problem
//
// A client that pipelines without end always has bytes in its socket, so its connection never
// waits. runtime.Gosched lets other goroutines run, but only those that the Go scheduler knows to
// be runnable: it puts the caller into the global queue, and a processor looks for bytes that have
// arrived at other sockets (the netpoller) only when its own queue and the global queue are empty.
// As many pipelining clients as Go has processors keep the global queue filled for ever. Then
// nobody looks at the other sockets except the runtime's monitor, which looks when nobody has
// looked for 10 ms.
//
// Example: two processors, three pipelining clients P, and a client C that sends one request.
//
//	global queue  P1 P2 P3   processor A runs P1, yields: P2 P3 P1
//	                         processor B runs P2, yields: P3 P1 P2   … neither finds an empty queue
//	netpoller     C          until the monitor looks: up to 10 ms later, for each request of C
//
// # The rule
//
// A connection that has read readBurst bytes without a wait yields. Once in turnEvery such a
// connection goes through the netpoller itself instead: it makes a descriptor readable and waits
// for it. All connections that would yield meanwhile wait for the same descriptor, so the queues
// run dry, a processor asks the netpoller, and the answer holds C as well.
//
// Between two passes a connection yields only if some goroutine is ready and waits for a processor.
// Where a processor is idle, a runtime.Gosched would wake another thread of Go for nothing, which
// takes over the goroutine that yields as often as not. It is no reason to leave out the pass: the
// thread that asks the netpoller may have found work meanwhile, and nobody else asks then.
//
// # What was rejected
//
// To stop reading until the next edge of the socket would be the same without a descriptor of our
// own, but the bytes that are in the socket already make no edge. A sleep of any length is no
// replacement: timers are looked at before the queues, so a sleep of a nanosecond returns without a
// look at the netpoller, and a longer one leaves the processor idle when there is no other client.
// A pass costs a write, a read and two switches of goroutines, 2 to 10 µs, so turnEvery bounds its
// share to a hundredth of the time.

// turnEvery is the time within which the netpoller is asked although all processors have work.
const turnEvery = time.Millisecond

// turns lets connections that never wait go through the netpoller. The zero value is ready for use.
type turns struct {
	mu     sync.Mutex      // protects the fields below
	next   time.Time       // when the next pass is due
	pass   chan struct{}   // closed when the pass under way is over; nil: there is none
	opened bool            // event has been set, or there is no descriptor to be had
	file   *os.File        // an eventfd; closed by the garbage collector
	event  syscall.RawConn // of file; nil: there is no descriptor
	ready  [1]metrics.Sample
}

// take lets other goroutines run. Once in turnEvery it lets those run as well whose bytes have
// arrived without the scheduler's knowledge.
func (t *turns) take() {
	pass, first := t.join(time.Now())
	switch {
	case first:
		t.askNetpoller()
		t.end()
	case pass != nil:
		<-pass
	case t.someReady():
		runtime.Gosched()
	}
}

// join returns the pass under way, or begins one if that is due. It returns nil if there is none.
func (t *turns) join(now time.Time) (pass chan struct{}, first bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.pass != nil || now.Before(t.next) || !t.openLocked() {
		return t.pass, false
	}
	t.pass = make(chan struct{})
	return t.pass, true
}

// end lets the connections go on that have joined the pass.
func (t *turns) end() {
	t.mu.Lock()
	defer t.mu.Unlock()
	close(t.pass)
	t.pass = nil
	t.next = time.Now().Add(turnEvery)
}

// openLocked makes the descriptor and reports whether there is one. Without a descriptor take only
// yields. The caller holds mu.
func (t *turns) openLocked() bool {
	if t.opened {
		return t.event != nil
	}
	t.opened = true
	file, err := newEvent()
	if err != nil {
		return false
	}
	t.file = file
	event, err := t.file.SyscallConn()
	if err == nil {
		t.event = event
	}
	return err == nil
}

// askNetpoller returns after a processor has asked the netpoller.
func (t *turns) askNetpoller() {
	waited := false
	_ = t.event.Read(func(fd uintptr) bool { // fails never: file is not closed and has no deadline
		count := [8]byte{1} // not 0, in either order of bytes
		if waited {
			_, _ = rawio.Read(fd, count[:]) // nothing depends on the count
			return true
		}
		waited = true
		_, errno := rawio.Write(fd, count[:])
		return errno != 0
	})
}

// someReady asks the Go scheduler whether goroutines are ready and wait for a processor. That takes
// 0.1 µs. It says so without asking while somebody else asks, since they would wait for each
// other, and where there are no passes, since timers need a turn then.
func (t *turns) someReady() bool {
	if !t.mu.TryLock() {
		return true
	}
	defer t.mu.Unlock()
	if t.event == nil {
		return true
	}
	t.ready[0].Name = "/sched/goroutines/runnable:goroutines"
	metrics.Read(t.ready[:])
	return t.ready[0].Value.Uint64() > 0
}
