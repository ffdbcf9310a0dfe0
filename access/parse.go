package access

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"unicode/utf8"

	"golang.org/x/crypto/bcrypt"
)

const (
	maxFile = 4 << 20 // bytes of an access file
	maxName = 255     // bytes of a name
	maxCost = 16      // of a bcrypt hash: with a higher cost a comparison takes seconds

	anyone = "anyone" // as WHO: with credentials or without
	local  = "local"  // as NETWORK: this machine
)

var errFormat = errors.New("a line is USER:HASH, \"token NAME SHA256\", \"cert NAME [SUBJECT]\" or \"allow WHO RIGHT,… [db=…] [prefix=…] [service=…] [from=…]\"")

// table is a parsed access file. It does not change.
type table struct {
	names  map[string]*principal
	tokens []token
	owners map[[sha256.Size]byte]*principal // by the token's digest: no token may have two owners
	certs  map[string][]*principal          // by subject
	anyone []rule
	worst  []byte // the slowest hash, for comparisons with unknown users; nil: no passwords
}

// principal is a WHO of the file.
type principal struct {
	name  string
	hash  []byte // of the password; nil: none
	known bool   // the file has a password, token or certificate of this name
	rules []rule
}

type token struct {
	digest [sha256.Size]byte
	of     *principal
}

// parse reads an access file. Errors begin with the number of the line.
func parse(text []byte) (*table, error) {
	if len(text) > maxFile {
		return nil, fmt.Errorf("an access file has at most %d bytes", maxFile)
	}
	t := &table{names: map[string]*principal{}, owners: map[[sha256.Size]byte]*principal{}, certs: map[string][]*principal{}}
	n := 0
	for line := range bytes.Lines(text) {
		n++
		if err := t.line(strings.TrimRight(string(line), "\r\n")); err != nil {
			return nil, fmt.Errorf("line %d: %w", n, err)
		}
	}
	for _, name := range sortedNames(t.names) {
		if !t.names[name].known {
			return nil, fmt.Errorf("%q is allowed something, but has no password, token or certificate", name)
		}
	}
	return t, nil
}

func sortedNames(names map[string]*principal) []string {
	var sorted []string
	for name := range names {
		sorted = append(sorted, name)
	}
	slices.Sort(sorted)
	return sorted
}

func (t *table) line(line string) error {
	if !utf8.ValidString(line) || strings.ContainsRune(line, 0) {
		return errors.New("the line is not UTF-8")
	}
	words := strings.Fields(line)
	for i, word := range words {
		if strings.HasPrefix(word, "#") {
			words = words[:i]
			break
		}
	}
	switch {
	case len(words) == 0:
		return nil
	case words[0] == "token" && len(words) == 3:
		return t.token(words[1], words[2])
	case words[0] == "cert" && len(words) > 1:
		subject := words[1]
		if len(words) > 2 { // a subject may have blanks
			subject = strings.Join(words[2:], " ")
		}
		return t.cert(words[1], subject)
	case words[0] == "allow" && len(words) > 2:
		return t.allow(words[1], words[2], words[3:])
	case len(words) == 1 && strings.Contains(line, ":"):
		name, hash, _ := strings.Cut(words[0], ":")
		return t.user(name, hash)
	}
	return errFormat
}

// who returns the principal with a name, and makes one for a new name.
func (t *table) who(name string) (*principal, error) {
	switch {
	case name == anyone:
		return nil, errors.New("anyone is everybody: the name is taken")
	case name == "" || len(name) > maxName || strings.Contains(name, ":"):
		return nil, fmt.Errorf("%q: a name has 1 to %d bytes and no colon", name, maxName)
	}
	p := t.names[name]
	if p == nil {
		p = &principal{name: name}
		t.names[name] = p
	}
	return p, nil
}

func (t *table) user(name, hash string) error {
	p, err := t.who(name)
	if err != nil {
		return err
	}
	cost, err := bcrypt.Cost([]byte(hash))
	switch {
	case p.hash != nil:
		return fmt.Errorf("%s has two passwords", name)
	case err != nil || len(hash) != hashLen:
		return fmt.Errorf("the hash of %s is not one of bcrypt: make it with htpasswd -B, or ktserver access hash", name)
	case cost > maxCost:
		return fmt.Errorf("the hash of %s has the cost %d: with more than %d a password takes seconds", name, cost, maxCost)
	}
	p.hash, p.known = []byte(hash), true
	if worst, _ := bcrypt.Cost(t.worst); t.worst == nil || cost > worst {
		t.worst = p.hash
	}
	return nil
}

// hashLen is the length of a bcrypt hash.
const hashLen = 60

func (t *table) token(name, digest string) error {
	p, err := t.who(name)
	if err != nil {
		return err
	}
	d := token{of: p}
	if n, err := hex.Decode(d.digest[:], []byte(digest[:min(len(digest), 2*len(d.digest))])); err != nil || n != len(d.digest) || len(digest) != 2*n {
		return fmt.Errorf("a token of %s is not a SHA-256 in hexadecimal: make it with ktserver access token", name)
	}
	if other := t.owners[d.digest]; other != nil {
		return fmt.Errorf("%s and %s have the same token", name, other.name)
	}
	t.owners[d.digest] = p
	p.known = true
	t.tokens = append(t.tokens, d)
	return nil
}

func (t *table) cert(name, subject string) error {
	p, err := t.who(name)
	if err != nil {
		return err
	}
	p.known = true
	t.certs[subject] = append(t.certs[subject], p)
	return nil
}

func (t *table) allow(who, rights string, limits []string) error {
	r, err := parseRule(rights, limits)
	if err != nil {
		return err
	}
	if who == anyone {
		t.anyone = append(t.anyone, r)
		return nil
	}
	p, err := t.who(who)
	if err != nil {
		return err
	}
	p.rules = append(p.rules, r)
	return nil
}

func parseRule(rights string, limits []string) (r rule, err error) {
	if r.rights, err = parseRights(rights); err != nil {
		return r, err
	}
	given := map[string]bool{}
	for _, limit := range limits {
		name, value, _ := strings.Cut(limit, "=")
		if given[name] {
			return r, fmt.Errorf("%s= comes twice", name)
		}
		given[name] = true
		if value == "" {
			return r, fmt.Errorf("%q: a limit is NAME=VALUE", limit)
		}
		if err := r.limit(name, value); err != nil {
			return r, err
		}
	}
	if given["prefix"] && given["service"] && !given["db"] {
		return r, errors.New("prefix= is about databases, and service= alone is about none")
	}
	if slices.Contains(r.databases, servicesNumber) && r.rights != Replicate {
		return r, fmt.Errorf("db=%s is the database of locks, sequences and quotas, which no client reads or changes as records: "+
			"write \"replicate db=%s\" for who copies it, and service= for who uses the services", servicesNumber, servicesNumber)
	}
	r.allDatabases = r.allDatabases || !given["db"] && !given["service"]
	r.allServices = len(given) == 0 || len(given) == 1 && given["from"]
	return r, nil
}

func (r *rule) limit(name, value string) (err error) {
	switch name {
	case "db":
		return r.limitDatabases(value)
	case "prefix":
		text, err := url.PathUnescape(value)
		r.prefix = []byte(text)
		if err != nil {
			return fmt.Errorf("prefix=: %w", err)
		}
		return nil
	case "service":
		for service := range strings.SplitSeq(value, ",") {
			if !slices.Contains([]string{Counter, Lock, Sequence, Quota}, service) {
				return fmt.Errorf("%q is no service: they are counter, lock, sequence, quota", service)
			}
			r.services = append(r.services, service)
		}
		return nil
	case "from":
		return r.limitNetworks(value)
	}
	return fmt.Errorf("%q is no limit: they are db=, prefix=, service=, from=", name)
}

func (r *rule) limitDatabases(value string) error {
	for word := range strings.SplitSeq(value, ",") {
		name, err := url.PathUnescape(word)
		switch {
		case err != nil:
			return fmt.Errorf("db=: %w", err)
		case name == "":
			return errors.New("db=: a name is missing")
		case word == "*":
			r.allDatabases = true
		}
		r.databases = append(r.databases, name)
	}
	return nil
}

func (r *rule) limitNetworks(value string) error {
	for word := range strings.SplitSeq(value, ",") {
		if word == local {
			r.local = true
			continue
		}
		network, err := parseNetwork(word)
		if err != nil {
			return err
		}
		r.from = append(r.from, network)
	}
	return nil
}

// parseNetwork reads ADDRESS or ADDRESS/BITS.
func parseNetwork(word string) (netip.Prefix, error) {
	network, err := netip.ParsePrefix(word)
	if err != nil {
		at, addrErr := netip.ParseAddr(word)
		if addrErr != nil {
			return network, fmt.Errorf("%q is no network: write 10.0.0.0/8, 10.1.2.3 or local", word)
		}
		network = netip.PrefixFrom(at.WithZone(""), at.BitLen())
	}
	if network != network.Masked() {
		return network, fmt.Errorf("%s: the network of that length is %s", word, network.Masked())
	}
	return network, nil
}
