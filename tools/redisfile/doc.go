// Package redisfile reads what a redis server keeps on disk: RDB files (snapshots, rdb.go) and the
// append-only file (AOF, the log of commands, aof.go).
//
// Keys with strings are given to the caller. Values of other types have no counterpart in a
// key-value database: they are passed over and counted by type.
//
// Both formats are described by redis itself (rdb.h and "Redis persistence" on its site). The
// package is our own because the libraries for RDB files either end with version 6 of the format
// (2013), or are not published as modules that can be had here.
package redisfile

import "fmt"

// Never is the expiration time of a key that stays.
const Never int64 = 0

// Left counts what was passed over.
type Left struct {
	Types     map[string]int // keys, or in an AOF commands, by the name of their type
	Databases map[int]int    // keys, or commands, of other databases, by their number

	// Cut says that the last command of an AOF, or its last transaction, is not there to its end.
	// It was not carried out; redis passes over it too when it starts.
	Cut bool
}

// Add adds the counts of another file.
func (l *Left) Add(other Left) {
	for name, n := range other.Types {
		l.ofType(name)
		l.Types[name] += n - 1
	}
	for db, n := range other.Databases {
		l.ofDatabase(db)
		l.Databases[db] += n - 1
	}
	l.Cut = l.Cut || other.Cut
}

func (l *Left) ofType(name string) {
	if l.Types == nil {
		l.Types = map[string]int{}
	}
	l.Types[name]++
}

func (l *Left) ofDatabase(n int) {
	if l.Databases == nil {
		l.Databases = map[int]int{}
	}
	l.Databases[n]++
}

// damaged is the error of a file that does not follow its format.
func damaged(format string, args ...any) error {
	return fmt.Errorf("the file is damaged, or of a kind that is not known here: "+format, args...)
}
