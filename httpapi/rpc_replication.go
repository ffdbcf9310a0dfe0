package httpapi

import (
	"encoding/hex"
	"errors"
	"fmt"
	"math"
	"strconv"
	"time"

	"gotycoon/internal/lenient"
	"gotycoon/ulog"
)

// Procedures on replication and the update log.

func rpcReplicas(c *call) error {
	if c.opts.Catalog.Log() == nil || c.opts.Replicas == nil {
		return errNoLog
	}
	names, values := c.opts.Replicas.Rows(c.opts.Now())
	for i := range names {
		c.out.addText(names[i], values[i])
	}
	return nil
}

const (
	replicasWait = 5 * time.Second
	replicasMost = time.Minute
)

// rpcWaitReplicas tells how many followers have everything that was written until now, or up to a
// time stamp, and waits until there are enough.
func rpcWaitReplicas(c *call) error {
	log := c.opts.Catalog.Log()
	if log == nil || c.opts.Replicas == nil {
		return errNoLog
	}
	if c.opts.Cluster != nil {
		switch addr, away := c.opts.Cluster.Elsewhere(); {
		case away && addr == "":
			return errNobody
		case away:
			return &ClusterError{Mistake: true, Err: fmt.Errorf("this server follows %s: ask that server which followers have its updates", addr)}
		}
	}
	at := log.Last()
	if text, ok := c.in.Get("ts"); ok {
		at = min(at, ulog.Stamp(max(lenient.Int(text), 0)))
	}
	want := int(min(max(c.in.intOr("replicas", int64(max(c.opts.Replicas.Required(), 1))), 0), math.MaxInt32))
	limit := replicasWait
	if text, ok := c.in.Get("timeout"); ok {
		limit = time.Duration(min(max(lenient.Float(text), 0), replicasMost.Seconds()) * float64(time.Second))
	}
	if err := c.beginWait(); err != nil {
		return err
	}
	if err := log.Wait(at); err != nil {
		return err
	}
	have, err := c.opts.Replicas.Await(at, want, limit)
	c.conn.Meter.Restart()
	switch {
	case err != nil:
		return err
	case have < want:
		return &fewError{have, want, at, limit}
	}
	c.out.addInt("replicas", int64(have))
	c.out.addText("ts", strconv.FormatUint(uint64(at), 10))
	return nil
}

const masterPort = 1978 // of a call that names none

// rpcTuneReplication changes where the server replicates from. A call with parameters that only our
// clients send, and with none of the original's, leaves the master as it is.
func rpcTuneReplication(c *call) error {
	if c.opts.Cluster != nil {
		return errElected
	}
	readOnly, guards := c.in.Get("readonly")
	if guards {
		if err := c.tuneReadOnly(string(readOnly)); err != nil {
			return err
		}
	}
	primary, claims := c.in.Get("primary")
	if claims {
		if err := c.tunePrimary(string(primary)); err != nil {
			return err
		}
	}
	if (guards || claims) && !c.in.Has("host") && !c.in.Has("port") && !c.in.Has("ts") && !c.in.Has("iv") {
		return nil
	}
	if c.opts.Follower == nil {
		return errNoRTS
	}
	host, _ := c.in.Get("host")
	port := c.in.intOr("port", masterPort)
	if port < 1 {
		port = masterPort
	}
	if copies, ok := c.in.Get("copy"); ok && string(copies) == "true" {
		c.opts.Follower.Recopy()
	}
	c.opts.Follower.Tune(string(untilNUL(host)), int(port), c.replicateFrom(), c.replicateInterval())
	return nil
}

// replicateFrom returns the stamp of the call, nil where it is to stay.
func (c *call) replicateFrom() *ulog.Stamp {
	text, ok := c.in.Get("ts")
	if !ok {
		return nil
	}
	if string(text) == "now" {
		return new(ulog.StampAt(c.opts.Now()))
	}
	if n := lenient.Int(text); n >= 0 {
		return new(ulog.Stamp(n))
	}
	return nil
}

// replicateInterval returns the interval of the call, nil where it is to stay.
func (c *call) replicateInterval() *time.Duration {
	text, ok := c.in.Get("iv")
	ms := lenient.Float(text)
	if !ok || !(ms >= 0) { // NaN too
		return nil
	}
	return new(time.Duration(math.Round(min(ms*float64(time.Millisecond), math.MaxInt64/2))))
}

// tuneReadOnly sets whether this server refuses updates of its clients. After an answer that the
// server refuses them no update is acknowledged any more, so whoever has received all of the log
// may take over. A server that was started to refuse updates may be told so even without an RTS
// file that works.
func (c *call) tuneReadOnly(text string) error {
	if c.opts.Follower == nil && !c.opts.Catalog.Guarded() {
		return errNoRTS
	}
	on, err := strconv.ParseBool(text)
	if err != nil {
		return errInvalidParameters
	}
	if err := c.opts.Catalog.SetGuarded(on); err != nil {
		return err
	}
	c.opts.Logger.Info(fmt.Sprintf("updates of clients are refused from now on: %t", on))
	return nil
}

// tunePrimary makes this server the primary of the services, by force if need be. A primary ceases
// to be one only when another server becomes the primary.
func (c *call) tunePrimary(text string) error {
	if c.opts.Claim == nil {
		return errNoServices
	}
	force := text == "force"
	if on, err := strconv.ParseBool(text); !force && (err != nil || !on) {
		return errInvalidParameters
	}
	return c.opts.Claim(force)
}

// rpcUlogList lists the files of the update log, each with its size and its newest time stamp.
func rpcUlogList(c *call) error {
	if c.opts.Catalog.Log() == nil {
		return errNoLog
	}
	files, err := c.opts.Catalog.LogFiles()
	if err != nil {
		return err
	}
	for _, f := range files {
		c.out.addText(f.Path, fmt.Sprintf("%d:%d", f.Size, f.Last))
	}
	c.out.rows.Sort()
	return nil
}

// rpcUlogRemove removes the files of the update log that hold nothing newer than ts, and that
// nobody needs; the newest file always stays.
func rpcUlogRemove(c *call) error {
	if c.opts.Catalog.Log() == nil {
		return errNoLog
	}
	var upTo ulog.Stamp
	text, ok := c.in.Get("ts")
	switch {
	case !ok:
		upTo = math.MaxUint64
	case string(text) == "now":
		upTo = ulog.StampAt(c.opts.Now())
	default:
		upTo = ulog.Stamp(max(lenient.Int(text), 0))
	}
	err := c.opts.Catalog.RemoveLogFiles(upTo)
	if e, ok := errors.AsType[*ulog.RemoveError](err); ok {
		return fmt.Errorf("%w: %s", errRemoveLog, e.Path)
	}
	return err
}

// rpcUlogReach tells a program that follows the update log, and has seen it up to the time stamp
// ts, whether everything newer is still there: gap is 1 where some of it has been removed or may
// have been. id names the log: a server that is given a new directory has a log with another id.
func rpcUlogReach(c *call) error {
	log := c.opts.Catalog.Log()
	if log == nil {
		return errNoLog
	}
	text, err := c.in.need("ts")
	if err != nil {
		return err
	}
	r, err := log.NewReader(ulog.Stamp(max(lenient.Int(text), 0)))
	if err != nil {
		return err
	}
	defer r.Close()
	id := log.ID()
	gap := int64(0)
	if r.Lost() != nil { // what is lost later cuts the stream that the program follows
		gap = 1
	}
	c.out.addInt("gap", gap)
	c.out.addText("id", hex.EncodeToString(id[:]))
	return nil
}
