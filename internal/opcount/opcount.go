// Package opcount counts operations for the cnt_ rows of the report procedure.
package opcount

import "sync/atomic"

// Counts has one counter per cnt_ row. The protocol handlers add to it; every server has its own.
type Counts struct {
	Set, SetMisses       atomic.Int64
	Remove, RemoveMisses atomic.Int64
	Get, GetMisses       atomic.Int64
	Script               atomic.Int64
	Misc                 atomic.Int64
}
