package replication

import (
	"gotycoon/client/wire/frame"
	"gotycoon/ulog"
)

// feed is a group of updates, encoded for sending. It is made once for all followers.
type feed struct {
	plain    []byte // messages
	extended []byte // messages with their origins; the slice plain if no update has an origin
	sid      int    // ID of the server that made the updates, or mixed
}

const (
	// mixed is the sid of a feed whose updates were made by several servers.
	mixed = -1

	// messageHead is the length of the sid and dbid at the beginning of a log message.
	messageHead = 4
)

// feedOf returns the feed of a group.
func feedOf(g *ulog.Group) *feed {
	return g.Memo(func(g *ulog.Group) any {
		f := &feed{plain: make([]byte, 0, g.Size())} // a message is no longer than its record
		first, relayed := true, false
		g.Each(func(e ulog.Entry) {
			sid, ok := sidOf(e.Message)
			if !ok || !first && sid != f.sid {
				sid = mixed
			}
			f.sid, first = sid, false
			relayed = relayed || e.Origin.Log != 0
			f.plain = appendUpdate(f.plain, e)
		})
		f.extended = f.plain
		if relayed {
			f.extended = make([]byte, 0, len(f.plain)+g.Count*frame.OriginSize)
			g.Each(func(e ulog.Entry) { f.extended = appendUpdate(appendOrigin(f.extended, e.Origin), e) })
		}
		return f
	}).(*feed)
}

func appendUpdate(dst []byte, e ulog.Entry) []byte {
	return frame.AppendMessage(dst, messageOf(e))
}

func messageOf(e ulog.Entry) frame.Message {
	return frame.Message{Magic: frame.Replication, TS: uint64(e.Stamp), Log: e.Message}
}

func appendOrigin(dst []byte, o ulog.Origin) []byte {
	if o.Log == 0 {
		return dst
	}
	return frame.AppendOrigin(dst, frame.Origin{Log: o.Log, Stamp: uint64(o.Stamp)})
}

// sidOf returns the ID of the server that a message of the log names. ok is false for a message
// that is too short to name one.
func sidOf(msg []byte) (sid int, ok bool) {
	if len(msg) < messageHead {
		return mixed, false
	}
	return int(msg[0])<<8 | int(msg[1]), true
}
