package pg

import (
	"encoding/binary"
	"errors"

	"gotycoon/db/engine"
	"gotycoon/ulog"
)

// The updates of a group, as the column body has them, one after the other:
//
//	varint   2 * change + origin. change: 0 the clear, n the group's nth change; origin: 1 where the
//	         update was not made here
//	u64 u64  the origin's log and stamp, if there is one
//	varint   size of the message
//	message  see ulog.AppendMessage
//
// It has the updates of all changes. Only when the group is made PostgreSQL knows which of them
// have lost: the column won tells readers what to leave out. Otherwise a function in the engine
// would have to cut the body.

// appendBody appends the updates of a group.
func appendBody(dst []byte, g *engine.Group) []byte {
	if g.Clear != nil {
		dst = appendUpdates(dst, 0, g.Clear.Log)
	}
	for i := range g.Changes {
		dst = appendUpdates(dst, i+1, g.Changes[i].Log)
	}
	return dst
}

func appendUpdates(dst []byte, change int, ups []ulog.Update) []byte {
	var message []byte
	for i := range ups {
		u := &ups[i]
		if u.Origin == (ulog.Origin{}) {
			dst = binary.AppendUvarint(dst, uint64(change)<<1)
		} else {
			dst = binary.AppendUvarint(dst, uint64(change)<<1|1)
			dst = binary.BigEndian.AppendUint64(dst, u.Origin.Log)
			dst = binary.BigEndian.AppendUint64(dst, uint64(u.Origin.Stamp))
		}
		message = ulog.AppendMessage(message[:0], u)
		dst = binary.AppendUvarint(dst, uint64(len(message)))
		dst = append(dst, message...)
	}
	return dst
}

var errBody = errors.New("the engine's log has a group that cannot be read")

// parseBody returns the updates of the changes that were made, whose slices are parts of body.
func parseBody(body []byte, won []int16) (ups []ulog.Update, err error) {
	number := func() uint64 {
		n, size := binary.Uvarint(body)
		if size <= 0 {
			err, body = errBody, nil
			return 0
		}
		body = body[size:]
		return n
	}
	for len(body) > 0 {
		head := number()
		var origin ulog.Origin
		if head&1 != 0 {
			if len(body) < 16 {
				return nil, errBody
			}
			origin = ulog.Origin{Log: binary.BigEndian.Uint64(body), Stamp: ulog.Stamp(binary.BigEndian.Uint64(body[8:]))}
			body = body[16:]
		}
		size := number()
		if err != nil || size > uint64(len(body)) {
			return nil, errBody
		}
		change := head >> 1
		if change > 0 && won != nil && (change > uint64(len(won)) || won[change-1] != made) {
			body = body[size:]
			continue
		}
		u, err := ulog.ParseMessage(body[:size:size])
		if err != nil {
			return nil, errBody
		}
		u.Origin = origin
		ups = append(ups, u)
		body = body[size:]
	}
	return ups, err
}

// made is a change that was made and logged, in the column won. 0: it has lost; 2: it has won, and
// there was nothing to do.
const made = 1
