//go:build race

package httpapi_test

// raceEnabled: the race detector makes sync.Pool forget things, which costs allocations, and has
// records in the heap of Go.
const raceEnabled = true
