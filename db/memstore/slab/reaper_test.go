package slab

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// Whoever frees much memory holds locks that others wait for: the memory goes back to the operating
// system later, and Wait tells when.
func TestNobodyWaitsUntilMemoryIsBack(t *testing.T) {
	const large = 16 << 20
	for name, free := range map[string]func(a *Arena, at Addr){
		"free":           func(a *Arena, at Addr) { a.Free(at) },
		"release":        func(a *Arena, _ Addr) { a.Release() },
		"of a successor": func(a *Arena, _ Addr) { b := a.Fresh(); b.Free(b.Alloc(large)) },
		"last reader":    func(a *Arena, at Addr) { p := a.Pin(at); a.Free(at); p.Release() },
	} {
		t.Run(name, func(t *testing.T) {
			a := New()
			begun, goOn, back := make(chan struct{}), make(chan struct{}), false
			a.reaper.park = func() { close(begun); <-goOn; back = true }
			free(a, a.Alloc(large))
			<-begun // and free has returned
			close(goOn)
			a.Wait()
			require.True(t, back)
		})
	}
}

// What a full Reserve leaves may be little, but the arena was large: its owner is in a hurry.
func TestNobodyWaitsForWhatAReserveLeaves(t *testing.T) {
	chunks := 1 + reapSize/chunkSize
	r := NewReserve(int64(chunks-1) * chunkSize)
	defer r.Close()
	a := NewOn(r)
	fill(a, chunks)
	parked := false
	a.reaper.park = func() { parked = true }
	a.Release()
	a.Wait()
	require.True(t, parked)
}

func TestLittleMemoryGoesBackAtOnce(t *testing.T) {
	a := New()
	a.reaper.park = func() { t.Error("a goroutine for a megabyte") }
	a.Free(a.Alloc(1 << 20))
	a.Wait()
	require.Zero(t, a.Mapped())
}
