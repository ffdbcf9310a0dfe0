package httpapi

import (
	"sync/atomic"
	"time"
)

// dateCache keeps the text of the Date header for the second it is true.
type dateCache struct {
	current atomic.Pointer[dateText]
}

type dateText struct {
	second int64
	text   []byte
}

func (d *dateCache) text(now time.Time) []byte {
	second := now.Unix()
	if c := d.current.Load(); c != nil && c.second == second {
		return c.text
	}
	c := &dateText{second, appendHTTPDate(nil, second)}
	d.current.Store(c)
	return c.text
}

// appendHTTPDate appends a date as HTTP has it, in GMT. Years above 9999 get a fifth digit.
func appendHTTPDate(dst []byte, second int64) []byte {
	return time.Unix(second, 0).UTC().AppendFormat(dst, "Mon, 02 Jan 2006 15:04:05 GMT")
}
