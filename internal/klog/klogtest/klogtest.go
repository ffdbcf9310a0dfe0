// Package klogtest is for tests that read a log while a server or a goroutine writes it.
package klogtest

import (
	"bytes"
	"sync"
)

// Buffer is an io.Writer that keeps everything written to it. Many goroutines may use it. The zero
// value is empty.
type Buffer struct {
	mu   sync.Mutex // protects text
	text bytes.Buffer
}

// Write implements io.Writer.
func (b *Buffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.Write(p)
}

// String returns everything written so far.
func (b *Buffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.String()
}
