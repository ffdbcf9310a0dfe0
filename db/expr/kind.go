package expr

import "strings"

// Kind is the type of a database. Its value is the type number that status reports.
type Kind int

// The kinds, each with its anonymous path or file suffix (reference: section 14).
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

// TypeCode returns the number of rows "type" and "realtype" of status.
func (k Kind) TypeCode() int { return int(k) }

// Ordered tells whether records are kept in the order of their keys, so that cursors can go backward.
func (k Kind) Ordered() bool {
	switch k {
	case ProtoTree, Grass, FileTree, DirTree, Plugged:
		return true
	}
	return false
}

// Compared tells whether the kind heeds the rcomp parameter.
func (k Kind) Compared() bool { return k.Ordered() && k != ProtoTree && k != Plugged }

// OnDisk tells whether records outlive the process.
func (k Kind) OnDisk() bool { return k >= FileHash && k != Plugged }

// kindOfPath returns the kind that the last component of a path names, and 0 for none.
func kindOfPath(base string) Kind {
	switch base {
	case "-", "+", ":", "*", "%":
		return kindOfType(base)
	}
	if dot := strings.LastIndexByte(base, '.'); dot >= 0 {
		return kindOfSuffix(base[dot+1:])
	}
	return 0
}

func kindOfSuffix(suffix string) Kind {
	switch suffix {
	case "kcph", "phdb":
		return ProtoHash
	case "kcpt", "ptdb":
		return ProtoTree
	case "kcs", "sdb":
		return Stash
	case "kcc", "cdb":
		return Cache
	case "kcg", "gdb":
		return Grass
	case "kch", "hdb":
		return FileHash
	case "kct", "tdb":
		return FileTree
	case "kcd", "ddb":
		return DirHash
	case "kcf", "fdb":
		return DirTree
	case "kcx", "xdb", "txt", "text", "tsv", "csv":
		return Text
	}
	return 0
}

// kindOfType returns the kind that a value of the type parameter names, and 0 for none.
func kindOfType(name string) Kind {
	switch name {
	case "-", "phash":
		return ProtoHash
	case "+", "ptree":
		return ProtoTree
	case ":", "stash":
		return Stash
	case "*", "cache":
		return Cache
	case "%", "grass":
		return Grass
	case "hash":
		return FileHash
	case "tree":
		return FileTree
	case "dir", "directory":
		return DirHash
	case "for", "forest":
		return DirTree
	case "tsv", "csv":
		return 0 // suffixes only
	}
	return kindOfSuffix(name)
}
