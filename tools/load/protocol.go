package load

import (
	"bufio"
	"maps"
	"slices"
)

// protocol makes requests and reads replies.
type protocol struct {
	increments bool
	check      func(l *Load) error // nil: every load will do
	// write appends a request.
	write func(out []byte, l *Load, r *request) []byte
	// read reads the reply. A refusal is an error of the type refused; after any other error the
	// connection cannot be used any more.
	read func(in *bufio.Reader, r *request) (outcome, error)
}

// outcome is what a request has found.
type outcome struct {
	missing bool // there was no record
}

// refused is the answer of a server that does not do what it is asked.
type refused string

// Error is the answer.
func (r refused) Error() string { return "the server answers " + string(r) }

func protocols() map[string]protocol {
	return map[string]protocol{
		"rest":      {increments: true, write: writeREST, read: readHTTP},
		"rpc":       {increments: true, write: writeRPC, read: readHTTP},
		"binary":    {check: checkBinary, write: writeBinary, read: readBinary},
		"memcached": {increments: true, check: checkMemcached, write: writeMemcached, read: readMemcached},
	}
}

// Protocols are the names of the protocols.
func Protocols() []string { return slices.Sorted(maps.Keys(protocols())) }
