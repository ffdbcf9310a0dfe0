package lock

import "bytes"

// maxLine is the longest line that is understood, in bytes without its end.
const maxLine = 8192

// verb is the word of a command: an index into verbWords.
type verb int

const (
	verbLock verb = iota
	verbLockFenced
	verbRelease
	verbStatus
	verbRenew
	verbCancel
	verbStatusByKey
	verbStatusByGrants
	verbStatusByRequests
	verbList
	verbQuit
	verbUnknown // any other word
)

// verbWords are the words that commands begin with, the most frequent first.
var verbWords = [...]string{"lock", "lock-fenced", "release", "status", "renew", "cancel", "status-by-key", "status-by-grants",
	"status-by-requests", "list", "quit"}

// commandNames are the names under which commands are counted, in the order of the verbs.
func commandNames() []string { return append(verbWords[:], "unknown") }

func verbOf(word []byte) verb {
	for i := range verbWords {
		if string(word) == verbWords[i] {
			return verb(i)
		}
	}
	return verbUnknown
}

// command is a line, cut at each space. Words point into it.
type command struct {
	verb  verb
	words [4][]byte // the words behind the verb; further words have no meaning
	n     int       // how many words there are
}

// parse cuts a line without its LF. Spaces at the end have no meaning; every other space ends a
// word, so words may be empty.
func parse(line []byte) (c command) {
	line = bytes.TrimRight(bytes.TrimSuffix(line, []byte{'\r'}), " ")
	word, line, _ := cut(line)
	c.verb = verbOf(word)
	for more := line != nil; more && c.n < len(c.words); c.n++ {
		c.words[c.n], line, more = cut(line)
	}
	return c
}

// cut returns the parts before and behind the first space. Without a space rest is nil.
func cut(line []byte) (word, rest []byte, found bool) {
	i := bytes.IndexByte(line, ' ')
	if i < 0 {
		return line, nil, false
	}
	return line[:i], line[i+1:], true
}

// Defaults of the lock command.
const (
	usualMax     = 1
	usualTimeout = -1 // for ever
	usualExpires = 120
)

// wish is what a lock command asks for.
type wish struct {
	max, timeout, expires int32 // seconds; timeout -1: for ever
	fenced                bool
}

// wish reads the arguments of a lock command. refusal is the reply to wrong arguments, "" if they
// are right.
func (c *command) wish(fenced bool) (w wish, refusal string) {
	w = wish{usualMax, usualTimeout, usualExpires, fenced}
	for i, dst := range []*int32{&w.max, &w.timeout, &w.expires} {
		if !c.number(i+1, dst) {
			return w, invalidNumber
		}
	}
	switch {
	case w.max < 1:
		return w, invalidMax
	case w.timeout < -1:
		return w, invalidTimeout
	case w.expires < 0:
		return w, invalidExpires
	}
	return w, ""
}

// prolongation reads the argument of a renew command; it returns -1 without an argument.
func (c *command) prolongation() (expires int32, refusal string) {
	expires = -1
	switch {
	case !c.number(1, &expires):
		return 0, invalidNumber
	case c.n > 1 && expires < 0:
		return 0, invalidExpires
	}
	return expires, ""
}

// number reads word i into dst. It reports false for a word that is no number; without word i, dst
// stays as it is.
func (c *command) number(i int, dst *int32) bool {
	if i >= c.n {
		return true
	}
	n, ok := parseInt32(c.words[i])
	*dst = n
	return ok
}

// parseInt32 reads decimal digits behind an optional sign.
func parseInt32(word []byte) (int32, bool) {
	negative := len(word) > 0 && word[0] == '-'
	if negative || len(word) > 0 && word[0] == '+' {
		word = word[1:]
	}
	n := int64(0)
	for _, digit := range word {
		if n = 10*n + int64(digit-'0'); digit < '0' || digit > '9' || n > 1<<31 {
			return 0, false
		}
	}
	if negative {
		n = -n
	}
	return int32(n), len(word) > 0 && n == int64(int32(n))
}
