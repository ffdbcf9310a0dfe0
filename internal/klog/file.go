package klog

import (
	"fmt"
	"os"
	"sync"
)

// File is a log file that others may rename: Reopen continues in a new file of the old name.
type File struct {
	path string

	mu sync.Mutex // protects f
	f  *os.File
}

// OpenFile opens a log file for appending and creates it when it is missing.
func OpenFile(path string) (*File, error) {
	f, err := openAppend(path)
	if err != nil {
		return nil, err
	}
	return &File{path: path, f: f}, nil
}

// Write appends p.
func (f *File) Write(p []byte) (int, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.f.Write(p)
}

// Reopen closes the file and opens its path again. After an error it goes on with the file it has.
func (f *File) Reopen() error {
	next, err := openAppend(f.path)
	if err != nil {
		return err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	old := f.f
	f.f = next
	if err := old.Close(); err != nil {
		return fmt.Errorf("close the old log file: %w", err)
	}
	return nil
}

// Close closes the file. Later writes fail.
func (f *File) Close() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.f.Close()
}

func openAppend(path string) (*os.File, error) {
	return os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o644)
}
