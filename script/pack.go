package script

import (
	"encoding/binary"
	"math"
	"strings"

	lua "github.com/yuin/gopher-lua"
)

// packItem is a letter of a format with its count.
type packItem struct {
	letter byte
	count  int
}

// all is the count that * means.
const all = math.MaxInt

// packItems splits a format.
func packItems(format string) []packItem {
	var items []packItem
	for i := 0; i < len(format); {
		item := packItem{format[i], 1}
		i++
		switch {
		case i < len(format) && format[i] == '*':
			item.count = all
			i++
		case i < len(format) && isDigit(format[i]):
			item.count = 0
			for ; i < len(format) && isDigit(format[i]); i++ {
				item.count = min(item.count*10+int(format[i]-'0'), math.MaxInt32)
			}
		}
		items = append(items, item)
	}
	return items
}

// ktPack serves kt.pack: it makes bytes of numbers. An array argument stands for its elements.
func ktPack(c call) int {
	format := c.text(1)
	var values []float64
	for i := 2; i <= c.l.GetTop(); i++ {
		t, ok := c.l.Get(i).(*lua.LTable)
		if !ok {
			values = append(values, c.float(i))
			continue
		}
		for k := range t.MaxN() {
			f, _ := number(t.RawGetInt(k + 1))
			values = append(values, f)
		}
	}
	var out []byte
	for _, item := range packItems(format) {
		for ; item.count > 0 && len(values) > 0; item.count-- {
			c.s.leash.work(c.l, 1)
			out = packOne(out, item.letter, values[0])
			values = values[1:]
		}
	}
	return c.pushBytes(out)
}

// packOne appends one number. An unknown letter uses a number up and appends nothing.
func packOne(out []byte, letter byte, f float64) []byte {
	little, big := binary.LittleEndian, binary.BigEndian
	switch letter {
	case 'c', 'C':
		return append(out, byte(cInt32(f)))
	case 's', 'S':
		return little.AppendUint16(out, uint16(cInt32(f)))
	case 'i':
		return little.AppendUint32(out, uint32(cInt32(f)))
	case 'I':
		return little.AppendUint32(out, uint32(cInt64(f)))
	case 'l':
		return little.AppendUint64(out, uint64(cInt64(f)))
	case 'L':
		return little.AppendUint64(out, cWrapped(f))
	case 'f', 'F':
		return little.AppendUint32(out, math.Float32bits(float32(f)))
	case 'd', 'D':
		return little.AppendUint64(out, math.Float64bits(f))
	case 'n':
		return big.AppendUint16(out, uint16(cInt32(f)))
	case 'N':
		return big.AppendUint32(out, uint32(cInt64(f)))
	case 'M':
		return big.AppendUint64(out, cWrapped(f))
	case 'w', 'W':
		return appendVarint(out, cWrapped(f))
	}
	return out
}

// cInt32 converts a number to 32 bits as the original's processor does: a number out of range
// becomes the least integer.
func cInt32(f float64) int32 {
	if f > -1<<31-1 && f < 1<<31 {
		return int32(f)
	}
	return math.MinInt32
}

// cWrapped converts a number to 64 bits without a sign as the original's processor does: it wraps
// around, below zero and above the range.
func cWrapped(f float64) uint64 {
	if f < 1<<63 {
		return uint64(cInt64(f))
	}
	return uint64(cInt64(f-1<<63)) ^ 1<<63
}

// packSize returns how many bytes a letter reads, 0 for a variable number or none.
func packSize(letter byte) int {
	switch letter {
	case 'c', 'C':
		return 1
	case 's', 'S', 'n':
		return 2
	case 'i', 'I', 'f', 'F', 'N':
		return 4
	case 'l', 'L', 'd', 'D', 'M':
		return 8
	}
	return 0
}

// ktUnpack serves kt.unpack: it makes numbers of bytes.
func ktUnpack(c call) int {
	format := c.text(1)
	var p []byte
	if c.has(2) {
		p = c.bytes(2)
	}
	t := c.l.NewTable()
	entries := 0
	for _, item := range packItems(format) {
		if !strings.ContainsRune("cCsSiIlLfFdDnNMwW", rune(item.letter)) {
			continue
		}
		for ; item.count > 0 && len(p) > 0; item.count-- {
			c.s.leash.work(c.l, moveSteps)
			var f float64
			var ok bool
			if f, p, ok = unpackOne(p, item.letter); ok {
				t.Append(lua.LNumber(f))
				entries++
				c.s.reserveEntries(c.l, entries)
			}
		}
	}
	c.s.room.table(t, entries)
	c.l.Push(t)
	return 1
}

// unpackOne reads one number. Too few bytes are used up and give no number.
func unpackOne(p []byte, letter byte) (f float64, rest []byte, ok bool) {
	if letter == 'w' || letter == 'W' {
		n, rest, ok := takeVarint(p)
		return float64(n), rest, ok
	}
	size := packSize(letter)
	if len(p) < size {
		return 0, nil, false
	}
	little, big := binary.LittleEndian, binary.BigEndian
	switch letter {
	case 'c':
		f = float64(int8(p[0]))
	case 'C':
		f = float64(p[0])
	case 's':
		f = float64(int16(little.Uint16(p)))
	case 'S':
		f = float64(little.Uint16(p))
	case 'i':
		f = float64(int32(little.Uint32(p)))
	case 'I':
		f = float64(little.Uint32(p))
	case 'l':
		f = float64(int64(little.Uint64(p)))
	case 'L':
		f = float64(little.Uint64(p))
	case 'f', 'F':
		f = float64(math.Float32frombits(little.Uint32(p)))
	case 'd', 'D':
		f = math.Float64frombits(little.Uint64(p))
	case 'n':
		f = float64(big.Uint16(p))
	case 'N':
		f = float64(big.Uint32(p))
	case 'M':
		f = float64(big.Uint64(p))
	}
	return f, p[size:], true
}

// An array or a map as text has each key and value with its length in front: see appendVarint.

// appendVarint appends a number in base 128, the most significant digit first. All bytes but the
// last have bit 7 set.
func appendVarint(dst []byte, n uint64) []byte {
	for shift := 7 * (varintSize64(n) - 1); shift > 0; shift -= 7 {
		dst = append(dst, byte(n>>shift)|0x80)
	}
	return append(dst, byte(n)&0x7f)
}

func varintSize64(n uint64) int {
	size := 1
	for ; n >= 0x80; n >>= 7 {
		size++
	}
	return size
}

func varintSize(n int) int { return varintSize64(uint64(n)) }

// takeVarint reads a number. A number without a last byte is taken as far as it goes. ok is false
// if p is empty.
func takeVarint(p []byte) (n uint64, rest []byte, ok bool) {
	for i, b := range p {
		n = n<<7 | uint64(b&0x7f)
		if b < 0x80 {
			return n, p[i+1:], true
		}
	}
	return n, nil, len(p) > 0
}

func ktArrayDump(c call) int {
	t := c.table(1)
	var out []byte
	for i := range t.MaxN() {
		if v, ok := bulkValue(t.RawGetInt(i + 1)); ok {
			c.s.allow(c.l, float64(len(out)+len(v)))
			out = append(appendVarint(out, uint64(len(v))), v...)
			c.s.leash.work(c.l, moveSteps+len(v)/comparedAtOnce)
		}
	}
	return c.pushBytes(out)
}

func ktArrayLoad(c call) int {
	p := c.bytes(1)
	t := c.l.NewTable()
	for len(p) > 0 {
		n, rest, ok := takeVarint(p)
		if !ok || n > uint64(len(rest)) {
			break
		}
		c.s.leash.work(c.l, moveSteps+int(n)/comparedAtOnce)
		c.s.reserve(c.l, float64(n))
		t.Append(c.s.room.text(string(rest[:n])))
		c.s.reserveEntries(c.l, t.Len())
		p = rest[n:]
	}
	c.s.room.table(t, t.Len())
	c.l.Push(t)
	return 1
}

func ktMapDump(c call) int {
	t := c.table(1)
	var out []byte
	for key, value := t.Next(lua.LNil); key != lua.LNil; key, value = t.Next(key) {
		k, ok := bulkValue(key)
		v, alsoOK := bulkValue(value)
		if ok && alsoOK {
			c.s.allow(c.l, float64(len(out)+len(k)+len(v)))
			out = appendVarint(appendVarint(out, uint64(len(k))), uint64(len(v)))
			out = append(append(out, k...), v...)
			c.s.leash.work(c.l, moveSteps+(len(k)+len(v))/comparedAtOnce)
		}
	}
	return c.pushBytes(out)
}

// mapEntries is how many entries of an array take the memory of one entry with a text as its key.
const mapEntries = 4

func ktMapLoad(c call) int {
	p := c.bytes(1)
	t := c.l.NewTable()
	entries := 0
	for len(p) > 0 {
		ksiz, rest, ok := takeVarint(p)
		vsiz, rest, alsoOK := takeVarint(rest)
		if !ok || !alsoOK || ksiz > uint64(len(rest)) || vsiz > uint64(len(rest))-ksiz {
			break
		}
		c.s.leash.work(c.l, moveSteps+int(ksiz+vsiz)/comparedAtOnce)
		c.s.reserve(c.l, float64(ksiz+vsiz))
		t.RawSetString(string(rest[:ksiz]), c.s.room.text(string(rest[ksiz:ksiz+vsiz])))
		entries += mapEntries
		c.s.reserveEntries(c.l, entries)
		p = rest[ksiz+vsiz:]
	}
	c.s.room.table(t, entries)
	c.l.Push(t)
	return 1
}
