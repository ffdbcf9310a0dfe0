package rebuild

import (
	"bytes"
	"fmt"

	"gotycoon/db/filestore"
	"gotycoon/db/filestore/run"
	"gotycoon/db/record"
)

// A tally looks at what stands in the bucket of a run, and adds up what the run says of itself. It
// takes the elements in order, so the info comes first and the filter before the blocks.
type tally struct {
	*pages
	number     uint64
	persistent bool // values have no expiration time

	info     run.Info
	finished bool
	filter   run.Filter

	seen    run.Info // Entries, Bytes, Live and LiveBytes of what was there
	denied  int64    // keys that the filter denies
	outside int64    // values that are missing outside of blocks
	names   uint64   // sum of the hashes of their keys
	last    []byte   // key of the newest entry
	any     bool     // last is valid
}

// element takes the next element; nil: all is well with it.
func (t *tally) element(e element) *Damage {
	switch {
	case e.flags != 0 || len(e.key) == 0:
	case len(e.key) == 1 && e.key[0] == run.InfoKey:
		// An info that cannot be read was there, so the run was finished.
		var ok bool
		if t.info, ok = run.DecodeInfo(e.value); !ok {
			t.finished = true
			return t.damage(e.page, "what run %d says of itself cannot be read", t.number)
		}
		t.finished = true
		return nil
	case len(e.key) == 1 && e.key[0] == run.FilterKey:
		var ok bool
		if t.filter, ok = run.DecodeFilter(e.value); !ok {
			return t.damage(e.page, "the filter of run %d does not match its checksum", t.number)
		}
		return nil
	case e.key[0] == run.BlockKey:
		return t.block(e)
	case e.key[0] == run.LargeKey:
		t.outside--
		t.names -= run.Hash(e.key[1:])
		flagged, err := run.OpenLarge(e.value)
		if err != nil {
			return t.damage(e.page, "the large value of key %q in run %d does not match its checksum", e.key[1:], t.number)
		}
		t.seen.Bytes += int64(len(flagged))
		return t.value(e.page, e.key[1:], flagged)
	}
	return t.damage(e.page, "holds something that is no part of a run")
}

// block takes a block.
func (t *tally) block(e element) *Damage {
	b, err := t.pages.block(e)
	if d, ok := err.(*Damage); ok { // as it was made
		t.last, t.any = append(t.last[:0], e.key[1:]...), true
		return d
	}
	for i := range b.Len() {
		key, flagged, _ := b.Entry(i) // block has read all
		if i == 0 && t.any && bytes.Compare(key, t.last) <= 0 {
			return t.damage(e.page, "a block of run %d begins with %q, and the block before ends with %q", t.number, key, t.last)
		}
		t.seen.Entries++
		t.seen.Bytes += int64(len(key) + len(flagged))
		hash := run.Hash(key)
		if t.filter != nil && !t.filter.MayHave(hash) {
			t.denied++
		}
		if len(flagged) == 0 {
			t.outside++
			t.names += hash
		} else if d := t.value(e.page, key, flagged); d != nil {
			return d
		}
	}
	t.last, t.any = append(t.last[:0], e.key[1:]...), true
	return nil
}

// value takes the flagged value of a key.
func (t *tally) value(id uint64, key, flagged []byte) *Damage {
	f, ok := filestore.DecodeFlagged(flagged)
	switch {
	case !ok:
		return t.damage(id, "the update of key %q in run %d cannot be read", key, t.number)
	case !f.Live:
	case !t.persistent && len(f.Value) < record.XTSize:
		return t.damage(id, "the value of key %q in run %d has no expiration time", key, t.number)
	default:
		t.seen.Live++
		t.seen.LiveBytes += int64(len(key) + len(f.Value))
	}
	return nil
}

// verdict compares what was there with what the run says of itself; it returns what is wrong in
// words. It is for a run whose pages were sound.
func (t *tally) verdict() (wrong []string) {
	say := func(format string, args ...any) { wrong = append(wrong, fmt.Sprintf(format, args...)) }
	if t.filter == nil {
		say("run %d has no filter", t.number)
	}
	if t.denied > 0 {
		say("the filter of run %d denies %d of its keys, which a server would not find", t.number, t.denied)
	}
	if t.outside != 0 || t.names != 0 {
		say("the large values of run %d are not those that its blocks ask for", t.number)
	}
	want := t.info
	want.About, want.AboutBytes = 0, 0
	if t.seen != want {
		say("run %d has %d entries with %d bytes, of them %d records with %d, and says that it has %d with %d, and %d with %d", t.number,
			t.seen.Entries, t.seen.Bytes, t.seen.Live, t.seen.LiveBytes, want.Entries, want.Bytes, want.Live, want.LiveBytes)
	}
	return wrong
}
