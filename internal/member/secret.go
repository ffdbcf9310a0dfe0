package member

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"slices"
	"sync"

	"gotycoon/client/wire/frame"
)

const (
	leastSecret = 32       // characters
	mostSecrets = 16       // lines
	maxFile     = 64 << 10 // bytes
)

// Secrets are the secrets of a cluster, one on each line of a file. A server shows the first one
// and accepts all of them, so a cluster can change its secret without a break: the new secret is
// added as the last line of all files, then moved to the first line, and then the old one removed.
type Secrets struct {
	path string
	log  *slog.Logger

	mu   sync.Mutex // protects the fields below
	text []byte     // content of the file
	keys [][]byte   // not changed, only replaced
	told string     // the latest error in the log
}

// ReadSecrets reads the file of a cluster's secrets. log may be nil.
func ReadSecrets(path string, log *slog.Logger) (*Secrets, error) {
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	s := &Secrets{path: path, log: log}
	var err error
	if s.text, s.keys, err = readSecrets(path); err != nil {
		return nil, fmt.Errorf("the cluster secret: %w", err)
	}
	return s, nil
}

// Poll reads the file again. A file that cannot be used leaves the secrets as they are, with an
// error in the log.
func (s *Secrets) Poll() {
	if s == nil {
		return
	}
	text, keys, err := readSecrets(s.path)
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case err != nil && err.Error() != s.told:
		s.told = err.Error()
		s.log.Error("the cluster secret stays as it is: " + s.told)
	case err == nil:
		if s.told = ""; !bytes.Equal(text, s.text) {
			s.text, s.keys = text, keys
			s.log.Warn(fmt.Sprintf("the cluster secret has been read again: %d lines", len(keys)))
		}
	}
}

// all returns the secrets, the one to show first.
func (s *Secrets) all() [][]byte {
	if s == nil {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.keys
}

func readSecrets(path string) (text []byte, keys [][]byte, err error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	switch {
	case err != nil:
		return nil, nil, err
	case !info.Mode().IsRegular():
		return nil, nil, fmt.Errorf("%s is no file", path)
	case info.Mode().Perm()&0o027 != 0:
		return nil, nil, fmt.Errorf("%s can be read or changed by others than its owner (mode %04o): chmod 600 %s", path, info.Mode().Perm(), path)
	}
	if text, err = io.ReadAll(io.LimitReader(f, maxFile+1)); err != nil {
		return nil, nil, err
	}
	keys, err = parseSecrets(text)
	if err != nil {
		return nil, nil, fmt.Errorf("%s: %w", path, err)
	}
	return text, keys, nil
}

func parseSecrets(text []byte) (keys [][]byte, err error) {
	if len(text) > maxFile {
		return nil, fmt.Errorf("a file of secrets has at most %d bytes", maxFile)
	}
	n := 0
	for line := range bytes.Lines(text) {
		n++
		line = bytes.TrimSpace(line)
		switch {
		case len(line) == 0:
			continue
		case len(line) < leastSecret:
			return nil, fmt.Errorf("line %d has %d characters, and a secret at least %d: make one with 'openssl rand -hex 32'", n, len(line), leastSecret)
		case len(keys) == mostSecrets:
			return nil, fmt.Errorf("there are more than %d secrets in it: remove those that no member shows any more", mostSecrets)
		}
		keys = append(keys, line)
	}
	if len(keys) == 0 {
		return nil, errors.New("there is no secret in it: make one with 'openssl rand -hex 32'")
	}
	return keys, nil
}

// The labels of the two sides.
const (
	openerLabel   = "gotycoon member 1: opener\n"
	acceptorLabel = "gotycoon member 1: acceptor\n"
)

// mac returns the proof of one side: over what was sent before in both directions, and over the
// rest of the message that the mac is a part of. Each message tells its own length, so different
// parts never make the same bytes.
func mac(key []byte, label string, sent, rest []byte) (m [frame.MemberMAC]byte) {
	h := hmac.New(sha256.New, key)
	for _, part := range [][]byte{[]byte(label), sent, rest} {
		_, _ = h.Write(part) // documented never to fail
	}
	return [frame.MemberMAC]byte(h.Sum(nil))
}

// welcomeMAC returns the mac of a welcome: zeros without a key.
func welcomeMAC(key, sent, welcome []byte) (m [frame.MemberMAC]byte) {
	const at = 2 // where the mac stands in a welcome
	if key == nil {
		return m
	}
	return mac(key, acceptorLabel, sent, slices.Concat(welcome[:at], welcome[at+frame.MemberMAC:]))
}

// match returns the key with which the opener has made its mac; ok is false if there is none. It
// takes the same time for each wrong mac.
func match(keys [][]byte, got [frame.MemberMAC]byte, sent, rest []byte) (key []byte, ok bool) {
	for _, k := range keys {
		if want := mac(k, openerLabel, sent, rest); hmac.Equal(want[:], got[:]) {
			key, ok = k, true
		}
	}
	return key, ok
}
