package ulog

import (
	"fmt"
	"slices"
	"time"
)

// Hold keeps all segments that may have updates newer than from, until the holder moves on or
// releases them. Hold does not bring back a segment that is gone already: a reader that is opened
// afterwards reports a gap.
func (l *Log) Hold(by Holder, from Stamp) *Hold { return l.holds.add(by, from) }

// HoldInfo describes a hold for people.
type HoldInfo struct {
	Holder
	From  Stamp     // updates newer than this are kept
	Since time.Time // when the hold began
	Until time.Time // when it ends by itself; zero: it does not
	Files int       // segments with updates newer than From, without the newest segment
	Bytes int64     // size of these segments
}

// Holds lists who holds segments, the holder that is furthest behind first. files is the result of
// Files, for the sizes.
func (l *Log) Holds(files []FileInfo) []HoldInfo {
	l.mu.Lock()
	current := l.dir + "/" + segmentName(l.written.seg)
	all := l.holds.live(everyHold)
	l.mu.Unlock()
	files = slices.DeleteFunc(slices.Clone(files), func(f FileInfo) bool { return f.Path == current })
	infos := make([]HoldInfo, len(all))
	for i, h := range all {
		infos[i] = h.info(files)
	}
	return infos
}

// info describes a hold. The newest segment is not among files.
func (h *Hold) info(files []FileInfo) HoldInfo {
	i := HoldInfo{Holder: h.Holder, From: h.From(), Since: h.since}
	if until := h.until.Load(); until != 0 {
		i.Until = time.Unix(0, until)
	}
	for _, f := range files {
		if f.Last > i.From {
			i.Files++
			i.Bytes += f.Size
		}
	}
	return i
}

// A retention is the state of the log on which one removal decides: the newest segment and the
// holds at one moment.
type retention struct {
	newest  uint64  // number of the segment being written: it and those above it stay
	floor   Stamp   // updates newer than this are needed; set by weigh
	holders []*Hold // whom the removal obeys, the one furthest behind first
	ignored []givenUp
}

// givenUp is a hold that a removal does not obey.
type givenUp struct {
	*Hold
	why string
}

// retain returns what a removal has to obey. When the disk is full, weak holds do not count. The
// caller holds holds.removing.
func (l *Log) retain(full bool) retention {
	l.mu.Lock()
	defer l.mu.Unlock()
	r := retention{newest: l.written.seg, floor: maxStamp}
	l.holds.forgetEnded()
	for h := range l.holds.all {
		switch {
		case h.Ended():
			r.ignored = append(r.ignored, givenUp{h, "its time is over"})
		case h.Weak && full:
			r.ignored = append(r.ignored, givenUp{h, "the disk is full"})
		default:
			r.holders = append(r.holders, h)
		}
	}
	sortHolds(r.holders)
	return r
}

// weigh leaves out the holds that would keep more bytes of the old segments than they may, and says
// from where on the others need updates.
func (r *retention) weigh(old []FileInfo) {
	r.holders = slices.DeleteFunc(r.holders, func(h *Hold) bool {
		bytes := int64(0)
		if h.Weak && h.Most > 0 {
			bytes = h.info(old).Bytes
		}
		if bytes <= h.Most {
			return false
		}
		r.ignored = append(r.ignored, givenUp{h, fmt.Sprintf("it would take %d bytes, and may take %d", bytes, h.Most)})
		return true
	})
	for _, h := range r.holders {
		r.floor = min(r.floor, h.From())
	}
}

// needing returns the holders that need updates from files whose newest stamp is last.
func (r *retention) needing(last Stamp) (all []*Hold) {
	for _, h := range r.holders {
		if h.From() < last {
			all = append(all, h)
		}
	}
	return all
}

// tellGivenUp says, once for each hold, that updates up to gone were removed which the holder
// needed. A hold that has ended is not told a second time: it leaves the registry. The caller holds
// holds.removing.
func (l *Log) tellGivenUp(ignored []givenUp, gone Stamp) {
	for _, h := range ignored {
		if h.told || h.From() >= gone {
			continue
		}
		h.told = true
		then := "it needs a copy of the databases"
		if h.Kind == Pin {
			then = "who relies on it must begin anew, with a new backup"
		} else if h.Key != "" {
			then = "it will fetch a copy of the databases"
		}
		l.logger.Warn(fmt.Sprintf("the update log %s is not kept any more for %s, from ts=%d on, because %s: %s",
			l.dir, h.What, h.From(), h.why, then))
		if h.Ended() {
			h.Release()
		}
	}
}

// Limits says how much of a log is kept that nobody needs. The zero value means all of it.
type Limits struct {
	Age   time.Duration // segments whose newest update is older are removed; 0: however old
	Size  int64         // bytes of all segments; 0: any number
	Count int           // number of segments; 0: any number
}

// On reports whether there is a limit.
func (k Limits) On() bool { return k != Limits{} }

// Beyond returns the newest stamp in the segments that are beyond the limits, 0 when there are
// none. A segment is beyond the limits when one of them says so: when its newest update is older
// than Age, or when the log without the older segments still has more than Size bytes or Count
// segments. The newest segment counts, and is never beyond.
func (l *Log) Beyond(k Limits) (Stamp, error) {
	if !k.On() {
		return 0, nil
	}
	l.holds.removing.Lock()
	defer l.holds.removing.Unlock()
	l.mu.Lock()
	newest, size := l.written.seg, l.written.off
	l.mu.Unlock()
	old, err := l.older(newest)
	if err != nil {
		return 0, err
	}
	for _, f := range old {
		size += f.Size
	}
	oldest := Stamp(0)
	if k.Age > 0 {
		oldest = StampAt(l.opts.Now().Add(-k.Age))
	}
	upTo := Stamp(0)
	for i, f := range old {
		count := len(old) - i + 1
		if f.Last >= oldest && (k.Size <= 0 || size <= k.Size) && (k.Count <= 0 || count <= k.Count) {
			break
		}
		upTo = max(upTo, f.Last)
		size -= f.Size
	}
	return upTo, nil
}

// Segment returns the number of the newest segment.
func (l *Log) Segment() uint64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.written.seg
}

// Removed returns how many segments were removed since the log was opened.
func (l *Log) Removed() int64 { return l.removed.Load() }
