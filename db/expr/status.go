package expr

import "strconv"

// Numbers of a fresh database of the original (reference: section 10).
const (
	hashBuckets = 1048583  // of a hash table where bnum is not given
	treeBuckets = 65536    // the same for the table that holds a tree's pages
	treePage    = 8192     // psiz
	treeCache   = 64 << 20 // pccap
	fileMap     = 64 << 20 // msiz
	fileFreePow = 10       // fpow
	fileAlign   = 3        // apow
	treeAlign   = 8        // apow of a file tree

	libVersion    = 16
	libRevision   = 13
	formatVersion = 5

	moduleMemory = 255 // chksum
	moduleFile   = 188
	moduleDir    = 184
)

// statusRows returns the rows of status that do not change while a database is used: parameters, and the layout of
// the original's file where it is fresh. count, size and realsize are the caller's; realsize is here, empty, where
// the kind has it.
func StatusRows(e Expr) map[string]string {
	p, k := e.Params, e.Kind
	rows := statusTable{
		"type":     strconv.Itoa(k.TypeCode()),
		"realtype": strconv.Itoa(k.TypeCode()),
		"path":     e.Path,
		"ktopts":   persistentBit(p.Persistent),
	}
	rows.add("ktcapcnt", p.KTCapCnt)
	rows.add("ktcapsiz", p.KTCapSiz)
	switch k {
	case Plugged:
		delete(rows, "realtype")
	case Cache, Grass:
		rows.addEngine(e, moduleMemory)
		rows.add("capcnt", p.CapCnt)
		rows.add("capsiz", p.CapSiz)
		rows.add("bnum", buckets(e))
	case FileHash, FileTree:
		rows.addEngine(e, moduleFile)
		rows.addFile(e)
	case DirHash, DirTree:
		rows.addEngine(e, moduleDir)
		rows.add("flags", 0)
	}
	if k.Compared() {
		rows.addTree(e)
	}
	return rows
}

// statusTable collects rows.
type statusTable map[string]string

func (t statusTable) add(name string, n int64) { t[name] = strconv.FormatInt(n, 10) }

// addEngine adds the rows of every kind with a format of its own.
func (t statusTable) addEngine(e Expr, module int64) {
	t.add("chksum", module)
	t.add("fmtver", formatVersion)
	t.add("libver", libVersion)
	t.add("librev", libRevision)
	t.add("opts", int64(e.Params.Opts&e.Kind.options()))
	t.add("recovered", 0)
	t.add("reorganized", 0)
}

// addFile adds the rows of databases in one file.
func (t statusTable) addFile(e Expr) {
	p := e.Params
	t.add("apow", alignment(e))
	t.add("bnum", buckets(e))
	t.add("dfunit", given(p.DFUnit, 1, 0))
	t.add("flags", 1) // open
	t.add("fpow", given(p.FPow, 0, fileFreePow))
	t.add("frgcnt", 0)
	t.add("msiz", given(p.MSiz, 0, fileMap))
	t.add("trimmed", 0)
	t["realsize"] = ""
}

// addTree adds the rows of trees: one empty leaf in an empty cache.
func (t statusTable) addTree(e Expr) {
	p := e.Params
	t.add("bnum", buckets(e))
	t.add("cusage", 0)
	t.add("first", 1)
	t.add("icnt", 0)
	t.add("last", 1)
	t.add("lcnt", 1)
	t.add("pccap", given(p.PCCap, 1, treeCache))
	t.add("pnum", 2)
	t.add("psiz", given(p.PSiz, 1, treePage))
	t["rcomp"] = p.RComp.String()
	t.add("root", 1)
}

// options returns the storage options that the kind heeds.
func (k Kind) options() Opts {
	switch k {
	case FileHash, FileTree:
		return OptSmall | OptLinear | OptCompress
	case Cache, Grass, DirHash, DirTree:
		return OptCompress
	}
	return 0
}

// given returns a parameter, or a default where it is less than the least value that counts.
func given(n, least, otherwise int64) int64 {
	if n < least {
		return otherwise
	}
	return n
}

func buckets(e Expr) int64 {
	if e.Kind.Ordered() {
		return given(e.Params.BNum, 1, treeBuckets)
	}
	return given(e.Params.BNum, 1, hashBuckets)
}

func alignment(e Expr) int64 {
	if e.Kind == FileTree {
		return given(e.Params.Apow, 0, treeAlign)
	}
	return given(e.Params.Apow, 0, fileAlign)
}

func persistentBit(persistent bool) string {
	if persistent {
		return "2"
	}
	return "0"
}
