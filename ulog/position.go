package ulog

import (
	"encoding/binary"
	"errors"
	"fmt"

	"gotycoon/client/wire/frame"
)

// UnknownLog in an Origin says that the update was made at a stamp in a log that nobody knows any
// more: the update was found in a database that keeps versions. It says nothing about what else has
// come from that log.
const UnknownLog = ^uint64(0)

// LogKey is the part of a log's identity by which origins name the log. It is neither 0 nor
// UnknownLog.
func LogKey(id [16]byte) uint64 {
	return min(max(1, binary.BigEndian.Uint64(id[:])), UnknownLog-1)
}

// A Position is what a server that follows a master remembers about it, in its own log. The
// position record is in the same group as the updates it speaks of, so that after a crash both are
// there or neither is.
type Position struct {
	DBID  uint16 // the database of the updates
	State []byte // how far the server has followed; package replication knows the format

	// After is a stamp of the master's log: the updates get later ones here, whatever the clock
	// says. So in each log an update has a later stamp than in the log that it came from. It is not
	// stored.
	After Stamp
}

const (
	positionOp      = 0xA1
	positionVersion = 1
	positionHead    = prefixSize + 1 + 2
)

var (
	errPositionVersion = errors.New("follow record of an unknown version")
	errPosition        = errors.New("malformed follow record")
)

// appendPosition appends the message of the position record for ups:
//
//	offset  0       2       4      5         6          8
//	        ┌───────┬───────┬──────┬─────────┬──────────┬──────┬─────────┬───────┐
//	        │ 00 00 │ ff ff │ a1   │ version │ dbid,u16 │ logs │ origins │ state │
//	        └───────┴───────┴──────┴─────────┴──────────┴──────┴─────────┴───────┘
//	logs     varnum count, then 8 bytes for each log
//	origins  varnum count; then for each of as many records behind this one: varnum 0 for
//	         no origin, or the number of its log, from 1, and varnum difference of its stamp
//	         to that of the previous origin, doubled, plus 1 when it is negative
//	state    the rest, see Position
//
// The record stands in front of the updates it speaks of, in the same group. As with commit
// records, database 65535 makes the original's slaves and tools pass it over.
func appendPosition(dst []byte, f *Position, ups []Update) []byte {
	dst = append(dst, 0, 0, 0xFF, 0xFF, positionOp, positionVersion)
	dst = binary.BigEndian.AppendUint16(dst, f.DBID)
	logs := originLogs(ups)
	dst = appendVarnum(dst, uint64(len(logs)))
	for _, log := range logs {
		dst = binary.BigEndian.AppendUint64(dst, log)
	}
	if len(logs) == 0 {
		return append(append(dst, 0), f.State...)
	}
	dst = appendVarnum(dst, uint64(len(ups)))
	before := Stamp(0)
	for i := range ups {
		o := ups[i].Origin
		n := logNumber(logs, o.Log)
		if dst = appendVarnum(dst, uint64(n)); n > 0 {
			dst = appendVarnum(dst, zigzag(int64(o.Stamp)-int64(before)))
			before = o.Stamp
		}
	}
	return append(dst, f.State...)
}

// originLogs returns the logs that updates come from, each once.
func originLogs(ups []Update) (logs []uint64) {
	for i := range ups {
		if log := ups[i].Origin.Log; log != 0 && logNumber(logs, log) == 0 {
			logs = append(logs, log)
		}
	}
	return logs
}

// logNumber returns the number of a log in the list, from 1; 0 where the list does not have it.
func logNumber(logs []uint64, log uint64) int {
	for i := range logs {
		if logs[i] == log {
			return i + 1
		}
	}
	return 0
}

func zigzag(n int64) uint64 { return uint64(n)<<1 ^ uint64(n>>63) }

func unzigzag(n uint64) int64 { return int64(n>>1) ^ -int64(n&1) }

// isPosition reports whether a message belongs to a position record, of whatever version.
func isPosition(msg []byte) bool {
	return len(msg) > prefixSize && msg[2] == 0xFF && msg[3] == 0xFF && msg[4] == positionOp
}

// parsePosition decodes the message of a position record. The origins are appended to dst; State is
// a part of msg.
func parsePosition(dst []Origin, msg []byte) (Position, []Origin, error) {
	if msg[prefixSize] != positionVersion {
		return Position{}, dst, fmt.Errorf("%w: %d", errPositionVersion, msg[prefixSize])
	}
	if len(msg) < positionHead {
		return Position{}, dst, errPosition
	}
	f := Position{DBID: binary.BigEndian.Uint16(msg[prefixSize+1:])}
	n, rest, ok := frame.CutVarnum(msg[positionHead:])
	if !ok || n > uint64(len(rest))/8 {
		return f, dst, errPosition
	}
	logs, rest := rest[:8*n], rest[8*n:]
	dst, rest, err := parseOrigins(dst, logs, rest)
	f.State = rest
	return f, dst, err
}

func parseOrigins(dst []Origin, logs, rest []byte) ([]Origin, []byte, error) {
	count, rest, ok := frame.CutVarnum(rest)
	if !ok || count > uint64(len(rest)) {
		return dst, nil, errPosition
	}
	before := Stamp(0)
	for range count {
		var n, diff uint64
		if n, rest, ok = frame.CutVarnum(rest); !ok || n > uint64(len(logs)/8) {
			return dst, nil, errPosition
		}
		if n == 0 {
			dst = append(dst, Origin{})
			continue
		}
		if diff, rest, ok = frame.CutVarnum(rest); !ok {
			return dst, nil, errPosition
		}
		before += Stamp(unzigzag(diff))
		log := binary.BigEndian.Uint64(logs[8*(n-1):])
		if log == 0 || before >= maxStamp {
			return dst, nil, errPosition
		}
		dst = append(dst, Origin{Log: log, Stamp: before})
	}
	return dst, rest, nil
}

// A note is what a position record remembers about the server that is followed (Position.State),
// and the record's stamp. Stamps put all notes into one order, together with the copies of notes
// that database files have.
//
// Open finds the newest note without reading more than the newest segment: each segment but the
// first begins with a group that repeats what was remembered last.
type note struct {
	state []byte
	at    Stamp
}

// repeated returns the group that repeats the note of the segments before at the beginning of a new
// segment. The note has a group of its own, because a crash may take away the group written behind
// it. The group's stamp is that of the last record before the segment.
func repeated(state []byte, last Stamp) []byte {
	if len(state) == 0 {
		return nil
	}
	msg := appendPosition(nil, &Position{State: state}, nil)
	b := appendFrameHead(nil, last, len(msg))
	b = append(append(b, msg...), endMark)
	return appendCommit(b, 0, last, 1)
}
