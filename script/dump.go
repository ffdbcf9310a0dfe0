package script

import lua "github.com/yuin/gopher-lua"

// Texts for arrays and maps: each part with its length in front, as a variable-length number.

// appendVarint appends a number of 7 bits a byte, the highest first; all bytes but the last have the bit 7.
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

// takeVarint reads a number. Where it has no end, what there is of it counts; ok is false where there is nothing.
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

// mapEntries is how many entries of an array take the memory of one with a text as its key.
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
