package ulog

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"gotycoon/internal/vfs"
)

// # Holds that outlast the process
//
// Most holders come back with the process and register anew: database files, snapshots. Two do not.
// A pin belongs to a program outside, such as one that archives the log: it asks for a hold by name
// and relies on it, whether or not the server is started again meanwhile. And a follower may be
// away while the server starts: nobody would hold the log for it until it is back.
//
// Both are kept in the file gotycoon.holds in the log's directory, a JSON array. A pin is in the
// file before Pin returns; the places of followers are written now and then (SaveHolds). A place in
// the file may be older than the follower's real one. That is safe: the hold of an older stamp
// keeps more. Begin reads the file before anybody can remove a segment. A connected follower comes
// back from the file as one that has gone, for the time that its Holder allows.
//
// Pins end by themselves, so that a program that is gone for good does not fill the disk, and their
// number is bounded. They count also when the disk is full.

const holdsName = "gotycoon.holds"

// Bounds of pins.
const (
	mostPins   = 1000
	LongestPin = 366 * 24 * time.Hour
)

// Errors of Pin.
var (
	ErrPinName  = errors.New("the name of a hold must be 1 to 64 letters, digits or any of . _ -")
	ErrPinTime  = fmt.Errorf("a hold must last for 1 to %d seconds", LongestPin/time.Second)
	ErrManyPins = fmt.Errorf("there are %d holds already: release some", mostPins)
)

var pinName = regexp.MustCompile(`^[A-Za-z0-9._-]{1,64}$`)

// Pin holds the log under a name for a time, and survives restarts. A pin with the name is
// replaced. from nil keeps the stamp of that pin, and is the end of the log where there is none.
// When Pin returns, the hold is on the disk.
func (l *Log) Pin(name string, from *Stamp, d time.Duration) (HoldInfo, error) {
	switch {
	case !pinName.MatchString(name):
		return HoldInfo{}, ErrPinName
	case d < time.Second || d > LongestPin:
		return HoldInfo{}, ErrPinTime
	}
	hs := &l.holds
	hs.saving.Lock()
	defer hs.saving.Unlock()
	old, ended := l.pins(name)
	if len(old) == 0 && !l.roomForPin() {
		return HoldInfo{}, ErrManyPins
	}
	at := l.Last()
	switch {
	case from != nil:
		at = min(*from, max(at, StampAt(hs.now())))
	case len(old) > 0 && !ended:
		at = old[0].From()
	}
	first := !hs.pinned()
	// The new hold is there before the old one ends: between the two no removal takes what both
	// keep.
	h := hs.add(Holder{Kind: Pin, What: "the hold " + name, Key: name}, at)
	h.Linger(d)
	if l.opts.SyncEach && first {
		// The present segment may have room at its end. It is complete when the next one has begun.
		l.writer.next.Store(true)
		if err := l.SyncTo(l.Tick()); err != nil {
			h.Release()
			return HoldInfo{}, err
		}
	}
	if err := l.saveLocked(old); err != nil {
		h.Release()
		_ = l.saveLocked(nil) // the file may have the new hold in place of the old one
		return HoldInfo{}, err
	}
	for _, o := range old {
		o.Release()
	}
	return h.info(nil), nil
}

// Unpin ends a pin, and reports whether there was one. When it returns, the pin does not come back
// with a restart.
func (l *Log) Unpin(name string) (bool, error) {
	l.holds.saving.Lock()
	defer l.holds.saving.Unlock()
	old, ended := l.pins(name)
	if err := l.saveLocked(old); err != nil {
		return false, err
	}
	for _, h := range old {
		h.Release()
	}
	return len(old) > 0 && !ended, nil
}

// pins returns the pin with a name, and whether it has ended. The caller holds holds.saving.
func (l *Log) pins(name string) (found []*Hold, ended bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for h := range l.holds.all {
		if h.Kind == Pin && h.Key == name {
			found, ended = append(found, h), h.Ended()
		}
	}
	return found, ended
}

// roomForPin reports whether there may be one more pin. Pins that have ended make room. The caller
// holds holds.saving.
func (l *Log) roomForPin() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	n := 0
	for h := range l.holds.all {
		if h.Kind == Pin {
			n++
		}
	}
	if n < mostPins {
		return true
	}
	maps.DeleteFunc(l.holds.all, func(h *Hold, _ struct{}) bool { return h.Kind == Pin && h.Ended() })
	return len(l.holds.live(func(h *Hold) bool { return h.Kind == Pin })) < mostPins
}

// savedHold is a hold in the file. Numbers of time are nanoseconds.
type savedHold struct {
	Kind  Kind          `json:"kind"` // Pin or Away
	Key   string        `json:"key"`
	What  string        `json:"what"`
	From  Stamp         `json:"from"`
	Since int64         `json:"since"`
	Until int64         `json:"until,omitempty"` // 0: Lasts from the restart on
	Lasts time.Duration `json:"lasts,omitempty"`
	Weak  bool          `json:"weak,omitempty"`
	Most  int64         `json:"most,omitempty"`
}

// savedWhole is how old the places of followers in the file may be.
const savedWhole = time.Minute

// SaveHolds writes the holds of followers that last beyond the process into the file. It writes
// when there are other followers than in the file, and else once a minute.
func (l *Log) SaveHolds() error {
	hs := &l.holds
	hs.saving.Lock()
	defer hs.saving.Unlock()
	next := l.toSave(nil)
	var before []savedHold
	_ = json.Unmarshal(hs.saved, &before) // none where nothing was written
	same := slices.EqualFunc(before, next, func(a, b savedHold) bool { return a.Kind == b.Kind && a.Key == b.Key && a.Until == b.Until })
	if age := hs.now().Sub(hs.savedAt); same && age >= 0 && age < savedWhole {
		return nil
	}
	return l.saveLocked(nil)
}

// toSave returns the holds for the file, without some, in the order of their names.
func (l *Log) toSave(without []*Hold) []savedHold {
	l.mu.Lock()
	defer l.mu.Unlock()
	rows := []savedHold{}
	for _, h := range l.holds.live(func(h *Hold) bool { return h.Kind == Pin || h.Lasts > 0 }) {
		if slices.Contains(without, h) {
			continue
		}
		by := h.Holder
		if by.Kind == Follower {
			by = by.away()
		}
		rows = append(rows, savedHold{Kind: by.Kind, Key: by.Key, What: by.What, From: h.From(), Since: h.since.UnixNano(),
			Until: h.until.Load(), Lasts: by.Lasts, Weak: by.Weak, Most: by.Most})
	}
	slices.SortFunc(rows, func(a, b savedHold) int { return strings.Compare(string(a.Kind)+a.Key, string(b.Kind)+b.Key) })
	return rows
}

// saveLocked writes the file, without some holds. The caller holds holds.saving.
func (l *Log) saveLocked(without []*Hold) error {
	hs := &l.holds
	rows := l.toSave(without)
	text, err := json.MarshalIndent(rows, "", " ")
	if err != nil {
		return err
	}
	if text = append(text, '\n'); bytes.Equal(text, hs.saved) || len(rows) == 0 && hs.saved == nil {
		return nil
	}
	if err := vfs.WriteFileAtomic(l.fs, filepath.Join(l.dir, holdsName), text); err != nil {
		hs.saved = []byte{} // the file may have the old text or the new one
		return fmt.Errorf("note who needs the update log: %w", err)
	}
	hs.saved, hs.savedAt = text, hs.now()
	return nil
}

// recallHolds brings back the holds in the file. Nobody else uses the log yet.
func (l *Log) recallHolds() error {
	name := filepath.Join(l.dir, holdsName)
	text, err := vfs.ReadFile(l.fs, name)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	var rows []savedHold
	if err == nil {
		err = json.Unmarshal(text, &rows)
	}
	if err != nil {
		return fmt.Errorf("read who needs the update log, %s: %w. To forget these holds, remove the file", name, err)
	}
	l.holds.saved = text
	for _, row := range rows {
		by := Holder{Kind: row.Kind, What: row.What, Key: row.Key, Weak: row.Weak, Most: row.Most, Lasts: row.Lasts}
		h := &Hold{Holder: by, in: &l.holds, since: time.Unix(0, row.Since)}
		h.stamp.Store(uint64(row.From))
		if h.until.Store(row.Until); row.Until == 0 {
			h.Linger(max(row.Lasts, time.Second))
		}
		l.holds.all[h] = struct{}{}
	}
	return nil
}
