package script

import (
	"encoding/binary"
	"strings"
	"time"

	lua "github.com/yuin/gopher-lua"

	"gotycoon/db/keymatch"
)

// servLog writes a line to the server's log.
func servLog(c call) int {
	kind := c.text(1)
	if message, ok := text(c.l.Get(2)); ok {
		c.s.pool.log(logLevel(kind), "[SCRIPT]: "+message)
	}
	return 0
}

// convert pushes the conversion of a text argument. For any other argument the function has no
// result.
func convert(c call, convert func(t string) float64) int {
	t, ok := text(c.l.Get(1))
	if !ok {
		return 0
	}
	return c.pushNumber(convert(t))
}

func ktAtoi(c call) int  { return convert(c, func(t string) float64 { return float64(atoi(t)) }) }
func ktAtoix(c call) int { return convert(c, func(t string) float64 { return float64(atoix(t)) }) }
func ktAtof(c call) int  { return convert(c, atof) }

func ktHashMurmur(c call) int {
	return convert(c, func(t string) float64 { return float64(murmur([]byte(t)) & hashMask) })
}

func ktHashFNV(c call) int {
	return convert(c, func(t string) float64 { return float64(fnv([]byte(t)) & hashMask) })
}

func ktLevdist(c call) int {
	a, b := c.text(1), c.text(2)
	// The error is an error of the leash, which check raises.
	n, _ := keymatch.Distance(c.s.leash.ask, []byte(a), []byte(b), c.flag(3, false))
	c.s.leash.check(c.l)
	return c.pushNumber(float64(n))
}

func ktTime(c call) int {
	return c.pushNumber(float64(time.Now().UnixMicro()) / 1e6)
}

// ktSleep waits. During the wait only the locks of the script itself are held.
func ktSleep(c call) int {
	const most = 1e9 // seconds
	if seconds := c.float(1); seconds > 0 {
		c.s.leash.sleep(c.l, time.Duration(min(seconds, most)*float64(time.Second)))
	}
	return 0
}

// ktSplit cuts a text at each of the delimiters; the text then ends at its first NUL. Without
// delimiters it cuts at NULs.
func ktSplit(c call) int {
	t := c.text(1)
	delimiters, ok := text(c.l.Get(2))
	if !ok {
		c.s.reserve(c.l, float64(strings.Count(t, "\x00"))*arrayEntry)
		return c.pushParts(strings.Split(t, "\x00"))
	}
	t, _, _ = strings.Cut(t, "\x00")
	var cuts [256]bool
	for i := range len(delimiters) {
		cuts[delimiters[i]] = true
	}
	var parts []string
	begin := 0
	for i := range len(t) {
		c.s.leash.work(c.l, 1)
		if cuts[t[i]] {
			parts, begin = append(parts, t[begin:i]), i+1
			c.s.reserveEntries(c.l, len(parts))
		}
	}
	return c.pushParts(append(parts, t[begin:]))
}

func (c call) pushParts(parts []string) int {
	t := c.l.CreateTable(len(parts), 0)
	for _, part := range parts {
		t.Append(lua.LString(part))
	}
	c.s.room.table(t, len(parts))
	c.l.Push(t)
	return 1
}

// ktBit computes with 32 bits.
func ktBit(c call) int {
	mode, num, aux := strings.ToLower(c.text(1)), bits32(c.float(2)), bits32(c.float(3))
	switch mode {
	case "and":
		num &= aux
	case "or":
		num |= aux
	case "xor":
		num ^= aux
	case "not":
		num = ^num
	case "left":
		num <<= aux % 32
	case "right":
		num >>= aux % 32
	}
	return c.pushNumber(float64(num))
}

func bits32(f float64) uint32 { return uint32(cInt64(f)) }

func cString(t string) string {
	t, _, _ = strings.Cut(t, "\x00")
	return t
}

// ktStrstr finds a text in another one, or replaces all its occurrences.
func ktStrstr(c call) int {
	t, pat := cString(c.text(1)), cString(c.text(2))
	alt, ok := text(c.l.Get(3))
	if !ok {
		return c.pushNumber(float64(strings.Index(t, pat) + 1))
	}
	if pat != "" {
		c.s.allow(c.l, float64(len(t))+float64(strings.Count(t, pat))*float64(len(alt)))
		t = strings.ReplaceAll(t, pat, cString(alt))
	}
	return c.pushBytes([]byte(t))
}

func ktStrfwm(c call) int {
	return c.pushBool(strings.HasPrefix(cString(c.text(1)), cString(c.text(2))))
}
func ktStrbwm(c call) int {
	return c.pushBool(strings.HasSuffix(cString(c.text(1)), cString(c.text(2))))
}

// ktRegex looks for a POSIX extended regular expression, or replaces its matches.
func ktRegex(c call) int {
	t, pattern := []byte(cString(c.text(1))), c.text(2)
	re, err := keymatch.Compile(c.s.leash.ask, pattern)
	alt, replace := text(c.l.Get(3))
	switch {
	case !replace:
		matched := err == nil && re.Match(t)
		c.s.leash.check(c.l)
		return c.pushBool(matched)
	case err != nil:
		return c.pushBytes(t)
	}
	return c.pushBytes(regexReplace(c, re, t, cString(alt)))
}

// regexReplace replaces all matches up to the first empty match, as the original does.
func regexReplace(c call, re *keymatch.Regex, t []byte, alt string) []byte {
	var out []byte
	at := 0
	for at < len(t) {
		c.s.leash.check(c.l)
		places := re.Find(t, at)
		c.s.leash.check(c.l)
		if places == nil {
			break
		}
		out = append(out, t[at:places[0]]...)
		out = expandRegex(out, t, places, alt)
		c.s.allow(c.l, float64(len(out)))
		if at = places[1]; places[1] == places[0] {
			break
		}
	}
	return append(out, t[at:]...)
}

// expandRegex appends a replacement, in which $0 to $9 and $& stand for parts of the match.
func expandRegex(out, t []byte, places []int, alt string) []byte {
	for i := 0; i < len(alt); i++ {
		if alt[i] != '$' || i+1 == len(alt) {
			out = append(out, alt[i])
			continue
		}
		i++
		group := int(alt[i]) - '0'
		switch {
		case alt[i] == '&':
			group = 0
		case !isDigit(alt[i]):
			out = append(out, alt[i])
			continue
		}
		if 2*group+1 < len(places) && places[2*group] >= 0 {
			out = append(out, t[places[2*group]:places[2*group+1]]...)
		}
	}
	return out
}

// Scripts get 48 bits of the hash functions of the original.
const (
	hashMask = 1<<48 - 1

	murmurSeed  = 19780211
	murmurPrime = 0xc6a4a7935bd1e995

	fnvStart = 14695981039346656037
	fnvPrime = 109951162811 // the usual prime is another one
)

// murmur is MurmurHash64A with the steps for 8 bytes in another order.
func murmur(p []byte) uint64 {
	h := murmurSeed ^ uint64(len(p))*murmurPrime
	for ; len(p) >= 8; p = p[8:] {
		n := binary.LittleEndian.Uint64(p) * murmurPrime
		n ^= n >> 47
		h = h*murmurPrime ^ n*murmurPrime
	}
	if len(p) > 0 {
		var tail [8]byte
		copy(tail[:], p)
		h = (h ^ binary.LittleEndian.Uint64(tail[:])) * murmurPrime
	}
	h = (h ^ h>>47) * murmurPrime
	return h ^ h>>47
}

func fnv(p []byte) uint64 {
	h := uint64(fnvStart)
	for _, c := range p {
		h = (h ^ uint64(c)) * fnvPrime
	}
	return h
}
