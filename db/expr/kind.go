package expr

import (
	"slices"
	"strings"
)

// Kind is the type of a database. Its value is the type number that status reports.
type Kind int

// The kinds, each with its anonymous path or file suffix.
const (
	ProtoHash Kind = 16 // -
	ProtoTree Kind = 17 // +
	Stash     Kind = 24 // :
	Cache     Kind = 32 // *
	Grass     Kind = 33 // %
	FileHash  Kind = 48 // .kch
	FileTree  Kind = 49 // .kct
	DirHash   Kind = 64 // .kcd
	DirTree   Kind = 65 // .kcf
	Text      Kind = 80 // .kcx

	Plugged Kind = 128 // of an engine, see Engine; always ordered
)

// TypeCode returns the number in the rows type and realtype of status.
func (k Kind) TypeCode() int { return int(k) }

// Ordered reports whether records are kept in the order of their keys, so that cursors can go
// backward.
func (k Kind) Ordered() bool {
	switch k {
	case ProtoTree, Grass, FileTree, DirTree, Plugged:
		return true
	}
	return false
}

// Compared reports whether the parameter rcomp has a meaning for the kind.
func (k Kind) Compared() bool { return k.Ordered() && k != ProtoTree && k != Plugged }

// OnDisk reports whether records outlive the process.
func (k Kind) OnDisk() bool { return k >= FileHash && k != Plugged }

// kindName is what one kind is called.
type kindName struct {
	kind     Kind
	types    []string // by the parameter type only; a single character: as a path, too
	suffixes []string // of paths
}

func kindNames() []kindName {
	return []kindName{
		{ProtoHash, []string{"-", "phash"}, []string{"kcph", "phdb"}},
		{ProtoTree, []string{"+", "ptree"}, []string{"kcpt", "ptdb"}},
		{Stash, []string{":", "stash"}, []string{"kcs", "sdb"}},
		{Cache, []string{"*", "cache"}, []string{"kcc", "cdb"}},
		{Grass, []string{"%", "grass"}, []string{"kcg", "gdb"}},
		{FileHash, []string{"hash"}, []string{"kch", "hdb"}},
		{FileTree, []string{"tree"}, []string{"kct", "tdb"}},
		{DirHash, []string{"dir", "directory"}, []string{"kcd", "ddb"}},
		{DirTree, []string{"for", "forest"}, []string{"kcf", "fdb"}},
		{Text, nil, []string{"kcx", "xdb", "txt", "text", "tsv", "csv"}},
	}
}

// kindOfPath returns the kind that the last component of a path names, 0 for none.
func kindOfPath(base string) Kind {
	if len(base) == 1 {
		return kindOfType(base)
	}
	dot := strings.LastIndexByte(base, '.')
	for _, n := range kindNames() {
		if dot >= 0 && slices.Contains(n.suffixes, base[dot+1:]) {
			return n.kind
		}
	}
	return 0
}

// kindOfType returns the kind that a value of the parameter type names, 0 for none. The suffixes
// are such values too, but for tsv and csv.
func kindOfType(name string) Kind {
	if name == "tsv" || name == "csv" {
		return 0
	}
	for _, n := range kindNames() {
		if slices.Contains(n.types, name) || slices.Contains(n.suffixes, name) {
			return n.kind
		}
	}
	return 0
}
