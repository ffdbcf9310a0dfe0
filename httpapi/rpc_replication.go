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

// Follower is the server's replication from a master.
type Follower interface {
	// Tune changes the master; an empty host means none. from is the stamp behind which updates are
	// fetched, interval what each of them costs at least; both are left as they are where nil.
	Tune(host string, port int, from *ulog.Stamp, interval *time.Duration)
	// Recopy has all databases replaced by copies of those of the master that Tune names next,
	// whatever they hold.
	Recopy()
	// Position returns the stamp in the master's log up to which everything is in the databases,
	// and whether there is a master.
	Position() (at ulog.Stamp, following bool)
}

// Replicas lists the followers of the server: one row each, its name a number that grows, its value
// fields NAME=VALUE with blanks between them.
type Replicas interface {
	Rows(now time.Time) (names, values []string)
}

func rpcReplicas(s *Session) error {
	if s.h.opts.Catalog.Log() == nil || s.h.opts.Replicas == nil {
		return errNoLog
	}
	names, values := s.h.opts.Replicas.Rows(s.h.opts.Now())
	for i := range names {
		s.out.addText(names[i], values[i])
	}
	return nil
}

const masterPort = 1978 // of a call that names none

// rpcTuneReplication changes where the server replicates from. A call with parameters that only our
// clients send, and with none of the original's, leaves the master as it is.
func rpcTuneReplication(s *Session) error {
	readOnly, guards := s.in.Get("readonly")
	if guards {
		if err := s.h.tuneReadOnly(string(readOnly)); err != nil {
			return err
		}
	}
	primary, claims := s.in.Get("primary")
	if claims {
		if err := s.h.tunePrimary(string(primary)); err != nil {
			return err
		}
	}
	if (guards || claims) && !s.in.Has("host") && !s.in.Has("port") && !s.in.Has("ts") && !s.in.Has("iv") {
		return nil
	}
	if s.h.opts.Follower == nil {
		return errNoRTS
	}
	host, _ := s.in.Get("host")
	port := s.in.intOr("port", masterPort)
	if port < 1 {
		port = masterPort
	}
	if copies, ok := s.in.Get("copy"); ok && string(copies) == "true" {
		s.h.opts.Follower.Recopy()
	}
	s.h.opts.Follower.Tune(string(untilNUL(host)), int(port), s.replicateFrom(), s.replicateInterval())
	return nil
}

// replicateFrom returns the stamp of the call, nil where it is to stay.
func (s *Session) replicateFrom() *ulog.Stamp {
	text, ok := s.in.Get("ts")
	if !ok {
		return nil
	}
	if string(text) == "now" {
		return new(ulog.StampAt(s.h.opts.Now()))
	}
	if n := lenient.Int(text); n >= 0 {
		return new(ulog.Stamp(n))
	}
	return nil
}

// replicateInterval returns the interval of the call, nil where it is to stay.
func (s *Session) replicateInterval() *time.Duration {
	text, ok := s.in.Get("iv")
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
func (h *Handler) tuneReadOnly(text string) error {
	if h.opts.Follower == nil && !h.opts.Catalog.Guarded() {
		return errNoRTS
	}
	on, err := strconv.ParseBool(text)
	if err != nil {
		return errInvalidParameters
	}
	if err := h.opts.Catalog.SetGuarded(on); err != nil {
		return err
	}
	h.opts.Logger.Info(fmt.Sprintf("updates of clients are refused from now on: %t", on))
	return nil
}

// tunePrimary makes this server the primary of the services, by force if need be. A primary ceases
// to be one only when another server becomes the primary.
func (h *Handler) tunePrimary(text string) error {
	if h.opts.Claim == nil {
		return errNoServices
	}
	force := text == "force"
	if on, err := strconv.ParseBool(text); !force && (err != nil || !on) {
		return errInvalidParameters
	}
	return h.opts.Claim(force)
}

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
		s.out.addText(f.Path, fmt.Sprintf("%d:%d", f.Size, f.Last))
	}
	s.out.rows.Sort()
	return nil
}

// rpcUlogRemove removes the files of the update log that hold nothing newer than ts, and that
// nobody needs; the newest file always stays.
func rpcUlogRemove(s *Session) error {
	if s.h.opts.Catalog.Log() == nil {
		return errNoLog
	}
	var upTo ulog.Stamp
	text, ok := s.in.Get("ts")
	switch {
	case !ok:
		upTo = math.MaxUint64
	case string(text) == "now":
		upTo = ulog.StampAt(s.h.opts.Now())
	default:
		upTo = ulog.Stamp(max(lenient.Int(text), 0))
	}
	err := s.h.opts.Catalog.RemoveLogFiles(upTo)
	if e, ok := errors.AsType[*ulog.RemoveError](err); ok {
		return fmt.Errorf("%w: %s", errRemoveLog, e.Path)
	}
	return err
}

// rpcUlogReach tells a program that follows the update log, and has seen it up to the time stamp
// ts, whether everything newer is still there: gap is 1 where some of it has been removed or may
// have been. id names the log: a server that is given a new directory has a log with another id.
func rpcUlogReach(s *Session) error {
	log := s.h.opts.Catalog.Log()
	if log == nil {
		return errNoLog
	}
	text, err := s.in.need("ts")
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
	s.out.addInt("gap", gap)
	s.out.addText("id", hex.EncodeToString(id[:]))
	return nil
}
