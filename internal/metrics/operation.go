package metrics

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// maxKey is how many bytes of a key are shown.
const maxKey = 64

// Operation is one request as the log shows it.
type Operation struct {
	Time     time.Time // when it was done
	Protocol string
	Command  string
	Database string // its name; empty where there is none in particular
	Key      string // shortened and quoted; empty where there is none
	In, Out  int    // bytes of the request, and of the reply; 0 where nobody knows
	Failed   bool
	Duration time.Duration // from the arrival of the request to when the reply may leave
	Wait     time.Duration // of it: waiting for the update log
	Batch    int           // requests that arrived and were answered together, this one included
	Peer     string        // IP:PORT of the client
}

// String is the line of the log.
func (o *Operation) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s %s", o.Protocol, o.Command)
	if o.Database != "" {
		fmt.Fprintf(&b, " db=%s", o.Database)
	}
	if o.Key != "" {
		fmt.Fprintf(&b, " key=%s", o.Key)
	}
	fmt.Fprintf(&b, " in=%d out=%d time=%.6f wait=%.6f", o.In, o.Out, o.Duration.Seconds(), o.Wait.Seconds())
	if o.Batch > 1 {
		fmt.Fprintf(&b, " batch=%d", o.Batch)
	}
	if o.Failed {
		b.WriteString(" failed")
	}
	fmt.Fprintf(&b, " peer=%s", o.Peer)
	return b.String()
}

// quote shows a key without line ends or anything else that a terminal would obey.
func quote(key []byte, length int) string {
	switch {
	case length == 0:
		return ""
	case length > len(key):
		return strconv.QuoteToASCII(string(key)) + "..." + strconv.Itoa(length)
	}
	return strconv.QuoteToASCII(string(key))
}
