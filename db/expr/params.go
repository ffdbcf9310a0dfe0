package expr

import (
	"math"
	"strings"
)

// Params are the parameters of a database expression. A number that was not given is -1.
type Params struct {
	// Of the record store.
	BNum   int64 // buckets of a hash table
	CapCnt int64 // records that Cache keeps
	CapSiz int64 // bytes that Cache keeps
	Opts   Opts
	PSiz   int64 // bytes of a tree's page
	PCCap  int64 // bytes of a tree's page cache
	RComp  Order
	Apow   int64 // alignment of records in a file, power of 2
	FPow   int64 // entries of the free block pool, power of 2
	MSiz   int64 // bytes of the file that are memory-mapped
	DFUnit int64 // free blocks that start a defragmentation
	ZComp  string
	ZKey   string

	// Debugging output.
	Log, LogKinds, LogPx, MTrg, MTrgPx string

	// Of expiration and replication.
	Persistent bool  // ktopts=p: records do not expire and values have no prefix
	KTCapCnt   int64 // records from which on the collector removes some
	KTCapSiz   int64 // bytes from which on the collector removes some

	// syncrep: followers that must have an update before it is answered, instead of the server's
	// -sync-replicas; not of the original
	SyncRep int64

	// lww=true: of concurrent updates on servers that follow each other the last one counts, see
	// (*DB).Replicate; not of the original
	LWW bool
}

// Opts are the storage options of a file, directory or cache database.
type Opts int

// The options, with the values that status adds up.
const (
	OptSmall    Opts = 1 << iota // s: 32-bit addresses
	OptLinear                    // l: linear collision chains
	OptCompress                  // c: compressed values
)

func newParams() Params {
	return Params{
		BNum: -1, CapCnt: -1, CapSiz: -1, PSiz: -1, PCCap: -1, Apow: -1, FPow: -1, MSiz: -1, DFUnit: -1,
		KTCapCnt: -1, KTCapSiz: -1, SyncRep: -1,
	}
}

// set takes over one parameter; of two with the same meaning the later one counts.
func (p *Params) set(key, value string) {
	switch field := p.fields()[key].(type) {
	case *int64:
		*field = parseSize(value)
	case *string:
		*field = value
	case *Opts:
		*field |= parseOpts(value)
	case *Order:
		*field = parseOrder(value, *field)
	}
	switch key {
	case "lww":
		p.LWW = value == "true" || value == "1"
	case "ktopts", "ktoptions":
		p.Persistent = p.Persistent || strings.Contains(value, "p")
	}
}

// fields returns the names of the parameters that are numbers, texts or words, and their fields.
func (p *Params) fields() map[string]any {
	return map[string]any{
		"bnum": &p.BNum, "buckets": &p.BNum,
		"capcnt": &p.CapCnt, "capcount": &p.CapCnt, "cap_count": &p.CapCnt,
		"capsiz": &p.CapSiz, "capsize": &p.CapSiz, "cap_size": &p.CapSiz,
		"psiz": &p.PSiz, "page": &p.PSiz,
		"pccap": &p.PCCap, "cache": &p.PCCap,
		"apow": &p.Apow, "alignment": &p.Apow,
		"fpow": &p.FPow, "fbp": &p.FPow,
		"msiz": &p.MSiz, "map": &p.MSiz,
		"dfunit": &p.DFUnit, "defrag": &p.DFUnit,
		"ktcapcnt": &p.KTCapCnt, "ktcapcount": &p.KTCapCnt, "ktcap_count": &p.KTCapCnt,
		"syncrep":  &p.SyncRep,
		"ktcapsiz": &p.KTCapSiz, "ktcapsize": &p.KTCapSiz, "ktcap_size": &p.KTCapSiz,

		"zcomp": &p.ZComp, "compressor": &p.ZComp,
		"zkey": &p.ZKey, "pass": &p.ZKey, "password": &p.ZKey,
		"log": &p.Log, "logger": &p.Log,
		"logkinds": &p.LogKinds, "logkind": &p.LogKinds,
		"logpx": &p.LogPx, "lpx": &p.LogPx,
		"mtrg": &p.MTrg, "metatrigger": &p.MTrg, "meta_trigger": &p.MTrg,
		"mtrgpx": &p.MTrgPx, "mtpx": &p.MTrgPx,

		"opts": &p.Opts, "options": &p.Opts,
		"rcomp": &p.RComp, "comparator": &p.RComp,
	}
}

func parseOpts(letters string) (o Opts) {
	for i, opt := range [...]Opts{OptSmall, OptLinear, OptCompress} {
		if strings.IndexByte(letters, "slc"[i]) >= 0 {
			o |= opt
		}
	}
	return o
}

// parseOrder returns the order that a value of rcomp names, and old for none.
func parseOrder(name string, old Order) Order {
	switch name {
	case "lex", "lexical":
		return Lexical
	case "lexdesc", "lexicaldesc":
		return LexicalDesc
	case "dec", "decimal":
		return Decimal
	case "decdesc", "decimaldesc":
		return DecimalDesc
	}
	return old
}

// parseSize parses an integer with an optional fraction and an optional unit k m g t p e, in either
// case, for powers of 1024. What does not fit saturates; no digits are 0.
func parseSize(s string) int64 {
	s = skipBlanks(s)
	negative := strings.HasPrefix(s, "-")
	if negative || strings.HasPrefix(s, "+") {
		s = s[1:]
	}
	whole, s := leadingDigits(s)
	fraction, weight := 0.0, 0.1
	if strings.HasPrefix(s, ".") {
		for s = s[1:]; s != "" && isDecimal(s[0]); s = s[1:] {
			fraction += float64(s[0]-'0') * weight
			weight /= 10
		}
	}
	shift := unitShift(skipBlanks(s))
	n := int64(math.MaxInt64)
	if whole <= math.MaxInt64>>shift {
		n = int64(whole<<shift) + int64(math.Ldexp(fraction, shift))
	}
	if n < 0 { // the fraction did not fit any more
		n = math.MaxInt64
	}
	if negative {
		return -n
	}
	return n
}

// skipBlanks cuts leading bytes 0x01 to 0x20.
func skipBlanks(s string) string {
	for s != "" && s[0] >= 0x01 && s[0] <= ' ' {
		s = s[1:]
	}
	return s
}

// leadingDigits returns the number that s begins with, saturated, and the rest.
func leadingDigits(s string) (n uint64, rest string) {
	for ; s != "" && isDecimal(s[0]); s = s[1:] {
		if n > (math.MaxUint64-9)/10 {
			n = math.MaxUint64/10 - 1
		}
		n = n*10 + uint64(s[0]-'0')
	}
	return n, s
}

func isDecimal(c byte) bool { return '0' <= c && c <= '9' }

// unitShift returns the power of 2 that the unit at the beginning of s stands for.
func unitShift(s string) int {
	if s == "" {
		return 0
	}
	return 10 * (1 + strings.IndexByte("kmgtpe", s[0]|0x20))
}
