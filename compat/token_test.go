package compat

import (
	"encoding/binary"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"time"
)

var (
	timeToken = regexp.MustCompile(`@(T|HTTPDATE|W3C|BE8|NBE8)([+-]\d+)@`)
	recvToken = regexp.MustCompile(`@(T|HTTPDATE|BE8)([+-]\d+)@|@TS8@|@DATE@`)
	wideToken = regexp.MustCompile(`@(BE8|NBE8)[+-]\d+@|@TS8@`)

	dateHeader   = regexp.MustCompile(`(?m)^Date: [^\r]*`)
	serverHeader = regexp.MustCompile(`(?m)^Server: [^\r]*`)
)

// clock is what the tokens of one case mean.
type clock struct {
	now  int64 // seconds at the start of the case
	port int   // of the server
}

// tolerance of a received time in seconds.
const tolerance = 3

// expand replaces the tokens of bytes to be sent.
func (k clock) expand(s string) string {
	s = timeToken.ReplaceAllStringFunc(s, func(token string) string {
		m := timeToken.FindStringSubmatch(token)
		t := k.at(m[2])
		switch m[1] {
		case "T":
			return strconv.FormatInt(t, 10)
		case "HTTPDATE":
			return time.Unix(t, 0).UTC().Format(http.TimeFormat)
		case "W3C":
			return time.Unix(t, 0).UTC().Format("2006-01-02T15:04:05Z")
		case "BE8":
			return string(binary.BigEndian.AppendUint64(nil, uint64(t)))
		default:
			return string(binary.BigEndian.AppendUint64(nil, uint64(-t)))
		}
	})
	return k.expandPort(s)
}

func (k clock) expandPort(s string) string {
	return strings.ReplaceAll(s, "@PORT@", strconv.Itoa(k.port))
}

// at is the time that a token's offset names.
func (k clock) at(offset string) int64 {
	n, _ := strconv.ParseInt(offset, 10, 64) // the expression lets only numbers through
	return k.now + n
}

// match compares received bytes with expected ones, which may contain tokens.
func (k clock) match(want, got string) bool {
	want = k.expandPort(want)
	i := 0
	for _, m := range recvToken.FindAllStringSubmatchIndex(want, -1) {
		literal := want[i:m[0]]
		if !strings.HasPrefix(got, literal) {
			return false
		}
		got = got[len(literal):]
		width, ok := k.matchToken(want[m[0]:m[1]], got)
		if !ok {
			return false
		}
		got = got[width:]
		i = m[1]
	}
	return got == want[i:]
}

// matchToken reports whether got begins with what token stands for, and the length of that.
func (k clock) matchToken(token, got string) (width int, ok bool) {
	m := recvToken.FindStringSubmatch(token)
	switch {
	case token == "@TS8@":
		return 8, len(got) >= 8
	case token == "@DATE@":
		if strings.HasPrefix(got, "@DATE@") {
			return len(token), true
		}
		return 29, len(got) >= 29
	case m[1] == "T":
		return 10, len(got) >= 10 && k.near(m[2], decimal(got[:10]))
	case m[1] == "BE8":
		return 8, len(got) >= 8 && k.near(m[2], int64(binary.BigEndian.Uint64([]byte(got[:8]))))
	default:
		if len(got) < 29 {
			return 0, false
		}
		t, err := time.Parse(http.TimeFormat, got[:29])
		return 29, err == nil && k.near(m[2], t.Unix())
	}
}

func (k clock) near(offset string, t int64) bool {
	d := t - k.at(offset)
	return -tolerance <= d && d <= tolerance
}

// decimal returns -1 for anything but digits.
func decimal(s string) int64 {
	n, err := strconv.ParseUint(s, 10, 62)
	if err != nil {
		return -1
	}
	return int64(n)
}

// maskHeaders hides the values of the two headers that always differ.
func maskHeaders(s string) string {
	s = dateHeader.ReplaceAllLiteralString(s, "Date: @DATE@")
	return serverHeader.ReplaceAllLiteralString(s, "Server: @SERVER@")
}

// wantLength is the number of bytes that expected bytes with tokens of 8 bytes stand for.
func wantLength(want string) int { return len(wideToken.ReplaceAllLiteralString(want, "12345678")) }
