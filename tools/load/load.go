// Package load puts load on a server and measures how long its requests take. It is what
// ktremotemgr bench does.
//
//	load.go       Load: what is sent, how much of it, where to
//	choice.go     which operation is next, on which keys
//	protocol.go   what a protocol must know; rest.go (REST and RPC), binary.go, memcached.go
//	run.go        connections that send, and the waits of their requests
//	fill.go       the records of a load: stored before it, removed after it
//
// # Coordinated omission
//
// With a rate, each request has a time at which it is due, and its wait counts from that time,
// whenever it was sent. Where the server stands still for a second, a thousand requests a second
// are late by up to a second, and are counted so. A generator that waits for each reply before it
// sends the next request, and counts from the sending, would report one slow request. Without a
// rate each connection sends when its reply has come: that finds out how much a server can do, and
// says less about waits.
package load

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"time"
)

// Load is what is sent to a server. Check completes it.
type Load struct {
	Protocol string // one of Protocols
	Mix      []Share
	DB       string // of the protocols but memcached: name or number of the database; empty: the first
	Prefix   string // of all keys
	Keys     uint64 // number of records
	Keyed    string // one of Distributions: which of the keys are asked for
	Least    int    // bytes of a value
	Most     int
	Bulk     int // records of a bulk

	Conns  int
	Rate   float64       // requests per second; 0: as many as possible
	Length time.Duration // of a run

	// Header is added to requests over HTTP: a line with credentials, or nothing.
	Header string
}

// Share is how much of a load an operation has.
type Share struct {
	Operation Operation
	Weight    float64
}

// Operation is a kind of request.
type Operation int

// The operations. The last one only removes what a load has stored.
const (
	Set Operation = iota
	Get
	Increment
	SetBulk
	GetBulk
	removeBulk
	operations
)

// String returns the name that ParseMix reads.
func (o Operation) String() string {
	return [...]string{"set", "get", "increment", "setbulk", "getbulk", "removebulk"}[o]
}

// ParseMix reads shares of operations, such as "set=10,get=90".
func ParseMix(text string) ([]Share, error) {
	var mix []Share
	for part := range strings.SplitSeq(text, ",") {
		name, weight, _ := strings.Cut(strings.TrimSpace(part), "=")
		s := Share{Operation: -1, Weight: 1}
		for o := range removeBulk {
			if o.String() == name {
				s.Operation = o
			}
		}
		if s.Operation < 0 {
			return nil, fmt.Errorf("%q is no operation: it is one of set, get, increment, setbulk, getbulk", name)
		}
		if slices.ContainsFunc(mix, func(other Share) bool { return other.Operation == s.Operation }) {
			return nil, fmt.Errorf("%s is there twice", name)
		}
		if weight != "" {
			if _, err := fmt.Sscanf(weight+"\n", "%g\n", &s.Weight); err != nil || !(s.Weight > 0) || s.Weight > 1e9 {
				return nil, fmt.Errorf("%s=%s: the share must be a number above 0", name, weight)
			}
		}
		mix = append(mix, s)
	}
	return mix, nil
}

const (
	mostConns = 10_000
	mostValue = 1 << 30
	mostBulk  = 100_000
)

// Check returns what is wrong with the load.
func (l *Load) Check() error {
	p, known := protocols()[l.Protocol]
	switch {
	case !known:
		return fmt.Errorf("there is no protocol %q: it is one of %s", l.Protocol, strings.Join(Protocols(), ", "))
	case !slices.Contains(Distributions(), l.Keyed):
		return fmt.Errorf("there is no distribution %q: it is one of %s", l.Keyed, strings.Join(Distributions(), ", "))
	case l.Keys < 1 || l.Conns < 1 || l.Conns > mostConns:
		return fmt.Errorf("there must be a key, and 1 to %d connections (-conns)", mostConns)
	case l.Least < 0 || l.Most < l.Least || l.Most > mostValue:
		return fmt.Errorf("a value must have 0 to %d bytes, and the smaller size stands first (-size)", mostValue)
	case l.Bulk < 1 || l.Bulk > mostBulk:
		return fmt.Errorf("a bulk must have 1 to %d records (-bulk)", mostBulk)
	case !(l.Rate >= 0 && l.Rate <= 1e9):
		return errors.New("the rate must be 0 to 1000000000 requests a second (-rate)")
	case l.Length <= 0:
		return errors.New("the time must be more than 0 (-time)")
	case l.Prefix == "" || strings.ContainsFunc(l.Prefix, func(r rune) bool { return !strings.ContainsRune(prefixLetters, r) }):
		return errors.New("the prefix of keys must have letters, digits and any of . _ : - only")
	}
	for _, s := range l.Mix {
		if s.Operation == Increment && !p.increments {
			return fmt.Errorf("the protocol %s has no increments", l.Protocol)
		}
	}
	if p.check != nil {
		return p.check(l)
	}
	return nil
}

// prefixLetters are letters that mean themselves in every protocol.
const prefixLetters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._:-"

// Target is a server under load.
type Target struct {
	Load
	// Dial connects to the server, over TLS where it wants that.
	Dial func(ctx context.Context) (net.Conn, error)
}
