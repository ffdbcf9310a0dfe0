package filestore

// What an overlay and a run store for a key, the flagged value:
//
//	offset  0      1       9     11
//	        ┌──────┬───────┬─────┬───────┐
//	        │ flag │ stamp │ sid │ value │
//	        └──────┴───────┴─────┴───────┘
//
// Stamp and sid are the version; they are there only with flagNoted, otherwise the value follows
// the flag. A tombstone has no value. The version lies in front of the value, and not in a tree of
// its own, so that an update changes one tree.
const (
	flagDead  = 0      // tombstone: the key is removed, whatever is below
	flagLive  = 1 << 0 // a record
	flagNoted = 1 << 1 // with its version

	headSize = 1 + versionSize // at most
)

// valueAt returns the offset of the value behind a flag.
func valueAt(flag byte) int {
	if flag&flagNoted == 0 {
		return 1
	}
	return headSize
}

// liveSize reports whether an entry is a record, and returns the bytes of its key and its value.
func liveSize(key, flagged []byte) (live bool, size int) {
	return flagged[0]&flagLive != 0, len(key) + len(flagged) - valueAt(flagged[0])
}

// notedEntry decodes what an overlay or a run has noted of a key; ok is false if no version was
// noted.
func notedEntry(flagged []byte) (e LastUpdate, ok bool) {
	flag := flagged[0]
	if flag&flagNoted == 0 {
		return e, false
	}
	return LastUpdate{decodeVersion(flagged[1:]), flag&flagLive == 0}, true
}

// A Flagged is a flagged value in its parts, for programs that read files without a Store.
type Flagged struct {
	Value []byte     // stored form; nil for a tombstone
	Live  bool       // false: a tombstone
	Last  LastUpdate // valid with Noted
	Noted bool
}

// DecodeFlagged takes an entry of a run apart; ok is false for bytes that are no flagged value.
func DecodeFlagged(b []byte) (f Flagged, ok bool) {
	if len(b) == 0 || b[0]&^(flagLive|flagNoted) != 0 || len(b) < valueAt(b[0]) {
		return f, false
	}
	if f.Live = b[0]&flagLive != 0; f.Live {
		f.Value = b[valueAt(b[0]):]
	}
	f.Last, f.Noted = notedEntry(b)
	return f, true
}
