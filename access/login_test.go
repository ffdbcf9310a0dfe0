package access

import (
	"context"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestRightPasswordsAreRememberedAndWrongOnesAreNot(t *testing.T) {
	f := open(t, "anna:"+hashOf(t, "secret"), "allow anna read")
	for range 3 {
		require.NoError(t, f.from("10.0.0.1:1").Present(basicHeader("anna", "secret")))
	}
	require.Len(t, f.logins.right, 1)
	require.Error(t, f.from("10.0.0.1:1").Present(basicHeader("anna", "secre")))
	require.Error(t, f.from("10.0.0.1:1").Present(basicHeader("anna", "")))
	require.Error(t, f.from("10.0.0.1:1").Present(basicHeader("ann", "asecret")))
	require.Len(t, f.logins.right, 1)
	for key := range f.logins.right {
		require.NotContains(t, string(key[:]), "secret")
	}
	f.write("anna:"+hashOf(t, "changed"), "allow anna read")
	f.Reload()
	require.Error(t, f.from("10.0.0.2:1").Present(basicHeader("anna", "secret")))
	require.NoError(t, f.from("10.0.0.2:1").Present(basicHeader("anna", "changed")))
}

func TestLoginsAreBounded(t *testing.T) {
	var l logins
	l.init()
	for i := range keepLogins + 100 {
		l.add([32]byte{byte(i), byte(i >> 8), byte(i >> 16)})
	}
	require.Len(t, l.right, keepLogins)
	last := keepLogins + 99
	require.True(t, l.has([32]byte{byte(last), byte(last >> 8), byte(last >> 16)}))
}

func TestWrongCredentialsAreSlowedDownPerPeer(t *testing.T) {
	var s throttle
	now := time.Now()
	a, b := peerOf(textAddr("10.0.0.1:1")).addr, peerOf(textAddr("10.0.0.2:1")).addr
	for n := range 3 {
		require.Zero(t, s.wait(a, now), n)
		s.fail(a, now)
	}
	s.fail(a, now)
	require.Equal(t, firstDelay, s.wait(a, now))
	s.fail(a, now)
	require.Equal(t, 2*firstDelay, s.wait(a, now))
	for range 100 {
		s.fail(a, now)
	}
	require.Equal(t, longestWait, s.wait(a, now))
	require.Equal(t, longestWait, s.wait(a, now.Add(-time.Hour)), "a clock that is set back")
	require.Zero(t, s.wait(b, now))
	require.Zero(t, s.wait(a, now.Add(longestWait)))
	require.Equal(t, 1, s.fail(a, now.Add(forgive+time.Second)))
	s.forget(a)
	require.Equal(t, 1, s.fail(a, now))

	one, two := peerOf(textAddr("[2001:db8::1]:1")).addr, peerOf(textAddr("[2001:db8::2]:1")).addr
	s.fail(one, now)
	require.Equal(t, 2, s.fail(two, now), "a network of IPv6 is one peer")
}

func TestRememberedPeersAreBounded(t *testing.T) {
	var s throttle
	now := time.Now()
	at := peerOf(textAddr("10.0.0.1:1")).addr
	for range keepPeers + 100 {
		s.fail(at, now)
		at = at.Next()
	}
	require.LessOrEqual(t, len(s.peers), keepPeers)
}

// Somebody who guesses waits, and somebody else at the same time does not. What waits ends with the
// guard.
func TestGuessingWaitsAndEndsWithTheGuard(t *testing.T) {
	f := open(t, "anna:"+hashOf(t, "secret"), "allow anna read")
	var all sync.WaitGroup
	for range 20 { // the clock stands still, so nobody's time comes
		all.Go(func() { _ = f.from("10.0.0.1:1").Present(basicHeader("anna", "wrong")) })
	}
	require.Eventually(t, func() bool {
		f.slow.mu.Lock()
		defer f.slow.mu.Unlock()
		for _, s := range f.slow.peers {
			return s.n == freeTries+1
		}
		return false
	}, 30*time.Second, time.Millisecond)
	require.NoError(t, f.from("10.0.0.2:1").Present(basicHeader("anna", "secret")))
	require.NoError(t, f.from("10.0.0.1:1").Present(basicHeader("anna", "secret")), "what is known to be right is not slow")
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	require.False(t, f.from("10.0.0.1:1").Login(ctx, "anna", []byte("wrong")))
	f.Close()
	all.Wait()
	f.done = make(chan struct{}) // for the clean-up
}

func TestTheLogHasNoSecretsAndFewLines(t *testing.T) {
	f := open(t, "anna:"+hashOf(t, "secret"), tokenLine(t, "ci"), "allow anna read")
	_ = f.from("10.0.0.1:7").Present(basicHeader("anna", "hunter2"))
	_ = f.from("10.0.0.1:7").Present(basicHeader("hunter3", "x"))
	_ = f.from("10.0.0.1:7").Present([]byte("Bearer hunter4"))
	for range 100 {
		f.failed(peerOf(textAddr("10.0.0.1:7")), "")
	}
	text := f.log.String()
	require.NotContains(t, text, "hunter")
	require.NotContains(t, text, "secret")
	require.NotContains(t, text, "$2")
	require.Contains(t, text, "wrong credentials from 10.0.0.1:7 for anna, 1 so far")
	require.Contains(t, text, "for nobody we know, 2 so far")
	require.Equal(t, linesPerSecond, strings.Count(text, "wrong credentials"))
	f.clock.add(2 * time.Second)
	for range 30 {
		f.failed(peerOf(textAddr("10.0.0.1:7")), "")
	}
	require.Contains(t, f.log.String(), "more lines like this")
}

func TestABrokenFileKeepsTheRules(t *testing.T) {
	f := open(t, "allow anyone read")
	v := f.from("10.0.0.1:1")
	require.NoError(t, v.Server(Read))
	f.write("allow anyone raed")
	f.Poll()
	f.Poll()
	require.NoError(t, v.Server(Read))
	require.Equal(t, 1, strings.Count(f.log.String(), "the access file has an error"), f.log)
	require.Contains(t, f.log.String(), "line 1")

	require.NoError(t, os.Remove(f.path))
	f.Poll()
	f.Poll()
	require.NoError(t, v.Server(Read))
	require.Equal(t, 1, strings.Count(f.log.String(), "cannot be read"), f.log)

	f.write("allow anyone write")
	f.Poll()
	require.Error(t, v.Server(Read))
	require.NoError(t, v.Server(Write))
	require.Contains(t, f.log.String(), "read again: 0 users")
}

// A file of the same length, written in the same tick of the file system's clock, is noticed too.
func TestPollNoticesContent(t *testing.T) {
	f := open(t, "allow anyone write")
	v := f.from("10.0.0.1:1")
	info, err := os.Stat(f.path)
	require.NoError(t, err)
	f.write("allow anyone read ")
	require.NoError(t, os.Chtimes(f.path, info.ModTime(), info.ModTime()))
	f.Poll()
	require.NoError(t, v.Server(Read))
	f.clock.add(time.Hour)
	f.Poll() // only looks
	require.NoError(t, v.Server(Read))
}

func TestOpenAndCheckTellWhatIsWrong(t *testing.T) {
	_, err := Open(Options{Path: t.TempDir()})
	require.ErrorContains(t, err, "is no file")
	_, err = Open(Options{Path: "/no/such/file"})
	require.ErrorIs(t, err, os.ErrNotExist)
	f := open(t, "allow anyone read")
	summary, err := Check(f.path)
	require.NoError(t, err)
	require.Equal(t, "0 users with a password, 0 tokens, 0 certificates, 1 rules", summary)
	f.write("allow", "x")
	_, err = Check(f.path)
	require.ErrorContains(t, err, "access: line 1: ")
	_, err = Check("/no/such/file")
	require.ErrorIs(t, err, os.ErrNotExist)
}

func TestHashes(t *testing.T) {
	hash, err := HashPassword([]byte("secret"))
	require.NoError(t, err)
	f := open(t, "anna:"+hash, "allow anna read")
	require.NoError(t, f.from("10.0.0.1:1").Present(basicHeader("anna", "secret")))
	for _, bad := range []string{"", strings.Repeat("x", 73)} {
		_, err = HashPassword([]byte(bad))
		require.Error(t, err)
	}
	_, err = HashToken([]byte("short"))
	require.Error(t, err)
}

func BenchmarkPresent(b *testing.B) {
	f := open(b, "anna:"+hashOf(b, "secret"), "allow anna read,write db=0 prefix=eu:")
	v := f.from("10.0.0.1:1")
	header := basicHeader("anna", "secret")
	key := []byte("eu:1")
	b.ReportAllocs()
	for b.Loop() {
		if v.Present(header) != nil || v.Enter() != nil || v.Key(Read, orders, key) != nil {
			b.Fatal("refused")
		}
	}
}

// Also a wrong token has to wait, and who waits is answered when the guard ends.
func TestWrongTokensWait(t *testing.T) {
	f := open(t, tokenLine(t, "ci"), "allow ci read")
	for range 50 {
		f.failed(peerOf(textAddr("10.0.0.1:1")), "")
	}
	ended := make(chan error, 3)
	go func() { ended <- f.from("10.0.0.1:1").Present([]byte("Bearer wrong")) }()
	go func() { ended <- f.from("10.0.0.1:1").Present([]byte("nonsense")) }()
	go func() { ended <- f.from("10.0.0.1:1").Present(basicHeader("anna", "no users at all")) }()
	require.NoError(t, f.from("10.0.0.1:1").Present([]byte("Bearer "+tokenText)), "a right one does not")
	f.Close()
	for range 3 {
		require.Error(t, <-ended)
	}
	f.done = make(chan struct{}) // for the clean-up
}
