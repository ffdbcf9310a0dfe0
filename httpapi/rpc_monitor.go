package httpapi

import (
	"fmt"
	"math"
	"strconv"
	"time"

	"gotycoon/internal/lenient"
	"gotycoon/internal/metrics"
)

// Procedures that show the requests of all ports while they are served. They cost something only
// while they are called.

const (
	watchTime   = time.Second // that a call lasts if it does not say it
	watchMost   = time.Minute
	monitorLook = 100 * time.Millisecond // between two looks at the client and its right

	monitorMost  = 1000                  // requests of one answer
	monitorBatch = 50 * time.Millisecond // from the first request of an answer to the answer
	monitorIdle  = 10 * time.Second      // a monitor ends that nobody has asked for so long
	monitorCost  = 2 << 20               // bytes that a monitor takes at most: see monitorRoom
	hotCost      = 512 << 10             // bytes that the counts of keys take: see hotKeys
)

// rpcMonitor answers with requests that were served since the last call of the connection, or waits
// for some.
func rpcMonitor(c *call) error {
	filter, err := c.watchFilter()
	if err != nil {
		return err
	}
	filter.Failed = c.in.Has("failed")
	limit := c.in.watchTime(watchTime)
	most := int(min(max(c.in.intOr("max", monitorMost), 1), monitorMost))
	if err := c.beginWait(); err != nil {
		return err
	}
	m, err := c.watchWith(filter)
	if err != nil {
		return err
	}
	end := time.NewTimer(limit)
	defer end.Stop()
	look := time.NewTicker(monitorLook)
	defer look.Stop()
	n := 0
	show := func(op metrics.Operation) {
		if n++; n == 1 {
			end.Reset(monitorBatch)
		}
		c.out.addText(strconv.Itoa(n), requestText(&op))
	}
	for waiting := true; waiting && n < most; {
		select {
		case op := <-m.Requests(): // before the end, if there are any
			show(op)
			continue
		default:
		}
		select {
		case op := <-m.Requests():
			show(op)
		case <-look.C:
			waiting = !c.over() && c.renewRights() == nil
		case <-end.C:
			waiting = false
		}
	}
	if err := c.renewRights(); err != nil { // before anything is told
		c.closeMonitor()
		return err
	}
	m.idle.Reset(monitorIdle)
	c.conn.Meter.Restart()
	c.out.addInt("missed", int64(m.Missed()))
	return nil
}

// watchWith returns the connection's stream of the requests that a filter chooses.
func (c *call) watchWith(f metrics.Filter) (*monitor, error) {
	c.unseen = true
	if m := c.monitor; m != nil && m.filter == f && m.idle.Stop() {
		return m, nil
	}
	c.closeMonitor()
	if err := c.conn.Keep(monitorCost); err != nil {
		return nil, err
	}
	stream := c.opts.Meters.Meter.NewMonitor(f)
	c.monitor = &monitor{stream, f, time.AfterFunc(watchMost+monitorIdle, stream.Close)}
	return c.monitor, nil
}

// closeMonitor ends the stream of the connection, if there is one.
func (c *call) closeMonitor() {
	if m := c.monitor; m != nil {
		m.idle.Stop()
		m.Close()
		_ = c.conn.Keep(-monitorCost) // giving back never fails
		c.monitor = nil
	}
}

// requestText describes a request: fields NAME=VALUE with blanks between them. Texts of clients are
// quoted.
func requestText(o *metrics.Operation) string {
	key := o.Key
	if key == "" {
		key = `""`
	}
	failed := 0
	if o.Failed {
		failed = 1
	}
	return fmt.Sprintf("time=%.6f protocol=%s command=%s db=%q key=%s in=%d out=%d failed=%d peer=%s",
		float64(o.Time.UnixMicro())/1e6, o.Protocol, o.Command, o.Database, key, o.In, o.Out, failed, o.Peer)
}

// rpcHotKeys counts the requests for each key for some time, and answers with the keys that have
// the most.
func rpcHotKeys(c *call) error {
	filter, err := c.watchFilter()
	if err != nil {
		return err
	}
	limit := c.in.watchTime(5 * time.Second)
	if err := c.beginWait(); err != nil {
		return err
	}
	if err := c.out.hold(hotCost); err != nil {
		return err
	}
	c.unseen = true
	hot := c.opts.Meters.Meter.NewHot(filter)
	defer hot.Close()
	end := time.NewTimer(limit)
	defer end.Stop()
	look := time.NewTicker(monitorLook)
	defer look.Stop()
	for waiting := true; waiting; {
		select {
		case <-look.C:
			waiting = !c.over() && c.renewRights() == nil
		case <-end.C:
			waiting = false
		}
	}
	c.conn.Meter.Restart()
	if err := c.renewRights(); err != nil { // before anything is told
		return err
	}
	keys, seen, left := hot.Top(int(min(max(c.in.intOr("max", 10), 1), math.MaxInt32)))
	for i, k := range keys {
		long := 0
		if k.Long {
			long = 1
		}
		c.out.addText(strconv.Itoa(i+1), fmt.Sprintf("count=%d over=%d long=%d db=%q key=%q", k.Count, k.Over, long, k.Database, k.Key))
	}
	c.out.addInt("seen", int64(seen))
	c.out.addInt("left", int64(left))
	return nil
}

// watchFilter returns which requests a call is about.
func (c *call) watchFilter() (f metrics.Filter, err error) {
	if c.opts.Meters.Meter == nil {
		return f, fmt.Errorf("%w: nobody measures requests here", errNotImplemented)
	}
	text := func(name string) string {
		value, _ := c.in.Get(name)
		return string(value)
	}
	f = metrics.Filter{
		Every: int(min(max(c.in.intOr("every", 1), 1), math.MaxInt32)), Protocol: text("protocol"), Command: text("command"),
		Prefix: text("prefix"), Peer: text("peer"),
	}
	if name, ok := c.in.Get("database"); ok {
		d := c.database(name)
		if d == nil {
			return f, errNoDatabase
		}
		f.Database = d.Name()
	}
	return f, nil
}

// watchTime returns how long a call lasts.
func (in *input) watchTime(standard time.Duration) time.Duration {
	text, ok := in.Get("seconds")
	if !ok {
		return standard
	}
	return time.Duration(min(max(lenient.Float(text), 0), watchMost.Seconds()) * float64(time.Second))
}

// over reports whether a call that only waits is to end: its client has gone, or the port stops.
func (c *call) over() bool {
	return c.conn.Gone() || c.conn.Ending != nil && c.conn.Ending.Err() != nil
}
