package member_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"gotycoon/access"
	"gotycoon/access/accesstest"
	"gotycoon/client/wire/frame"
	"gotycoon/internal/member"
	"gotycoon/internal/netio"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const (
	patience = 30 * time.Second
	secret   = "0123456789abcdef0123456789abcdef"
	other    = "another secret of 32 characters!"
)

// secrets are read from a file with these lines.
func secrets(t *testing.T, lines ...string) *member.Secrets {
	t.Helper()
	path := filepath.Join(t.TempDir(), "secret")
	require.NoError(t, os.WriteFile(path, []byte(strings.Join(lines, "\n")), 0o600))
	s, err := member.ReadSecrets(path, nil)
	require.NoError(t, err)
	return s
}

// text is a log that a test can read.
type text struct {
	mu  sync.Mutex
	all bytes.Buffer
}

// Write implements io.Writer.
func (l *text) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.all.Write(p)
}

// String returns what was written.
func (l *text) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.all.String()
}

// accepted is how a connection was answered.
type accepted struct {
	request member.Request
	err     error
	conn    net.Conn
}

// server accepts members on a port of its own.
type server struct {
	t        *testing.T
	addr     string
	accepted chan accepted
	log      text
}

// listen starts a server. Nobody shows a certificate.
func listen(t *testing.T, s *member.Secrets, change func(*member.Acceptor)) *server {
	t.Helper()
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	require.NoError(t, err)
	srv := &server{t: t, addr: l.Addr().String(), accepted: make(chan accepted, 100)}
	a := &member.Acceptor{Secrets: s, Logger: slog.New(slog.NewTextHandler(&srv.log, nil)), Serves: func(member.Request) *member.Refused { return nil }}
	if change != nil {
		change(a)
	}
	var all sync.WaitGroup
	all.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			all.Go(func() { srv.accept(a, c) })
		}
	})
	t.Cleanup(func() {
		l.Close()
		all.Wait()
	})
	return srv
}

func (s *server) accept(a *member.Acceptor, c net.Conn) {
	in := netio.New(c, netio.NewPool(), netio.Options{Timeout: patience})
	defer in.Close()
	if in.WaitByte() != nil {
		c.Close()
		return
	}
	r, err := a.Accept(in, c.RemoteAddr(), func() error { return member.ErrNoCluster })
	if err != nil || len(in.Buffered()) > 0 {
		c.Close()
	}
	s.accepted <- accepted{r, err, c}
}

func (s *server) next() accepted {
	s.t.Helper()
	select {
	case a := <-s.accepted:
		s.t.Cleanup(func() { a.conn.Close() })
		return a
	case <-time.After(patience):
		require.FailNow(s.t, "nobody has come")
	}
	panic("unreachable")
}

func (s *server) dial() net.Conn {
	s.t.Helper()
	c, err := net.Dial("tcp4", s.addr)
	require.NoError(s.t, err)
	s.t.Cleanup(func() { c.Close() })
	require.NoError(s.t, c.SetDeadline(time.Now().Add(patience)))
	return c
}

func TestAMemberIsLetInAndSpeaksAtOnce(t *testing.T) {
	s := listen(t, secrets(t, secret), nil)
	client := &access.Client{Address: "192.0.2.7:4711", Secure: true, Subjects: []string{"anna", "mail@example.com"}}
	c, err := member.Dial(t.Context(), s.addr, member.Options{Secrets: secrets(t, secret), Kind: frame.MemberLock, Name: "a:1978", Client: client})
	require.NoError(t, err)
	defer c.Close()
	a := s.next()
	require.NoError(t, a.err)
	require.Equal(t, member.Request{Kind: frame.MemberLock, Name: "a:1978", Client: client}, a.request)
	for _, way := range []struct{ from, to net.Conn }{{c, a.conn}, {a.conn, c}} {
		_, err = io.WriteString(way.from, "hello")
		require.NoError(t, err)
		got := make([]byte, len("hello"))
		_, err = io.ReadFull(way.to, got)
		require.NoError(t, err)
		require.Equal(t, "hello", string(got))
	}
}

func TestSecretsThatDiffer(t *testing.T) {
	for name, c := range map[string]struct {
		here, there []string
		text        string
	}{
		"wrong":         {[]string{secret}, []string{other}, "another secret"},
		"none there":    {[]string{secret}, nil, "that server knows no cluster"},
		"none here":     {nil, []string{secret}, "which this server was not given"},
		"neither":       {nil, nil, "that server knows no cluster"},
		"old and new":   {[]string{secret}, []string{other, secret}, ""},
		"new and old":   {[]string{other, secret}, []string{other}, ""},
		"not yet added": {[]string{other, secret}, []string{secret}, "another secret"},
	} {
		t.Run(name, func(t *testing.T) {
			read := func(lines []string) *member.Secrets {
				if lines == nil {
					return nil
				}
				return secrets(t, lines...)
			}
			s := listen(t, read(c.there), nil)
			conn, err := member.Dial(t.Context(), s.addr, member.Options{Secrets: read(c.here), Kind: frame.MemberCluster})
			if c.text == "" {
				require.NoError(t, err)
				conn.Close()
				return
			}
			require.ErrorContains(t, err, c.text)
			require.Error(t, s.next().err)
			require.Contains(t, s.log.String(), "member: refused 127.0.0.1:")
			require.NotContains(t, s.log.String(), secret)
		})
	}
}

func TestARefusalHasAReason(t *testing.T) {
	s := listen(t, secrets(t, secret), func(a *member.Acceptor) {
		a.Serves = func(r member.Request) *member.Refused {
			return &member.Refused{Status: frame.MemberStandby, Reason: "follows " + r.Name + strings.Repeat("!", 300)}
		}
	})
	_, err := member.Dial(t.Context(), s.addr, member.Options{Secrets: secrets(t, secret), Kind: frame.MemberData, Name: "b"})
	var refused *member.Refused
	require.ErrorAs(t, err, &refused)
	require.Equal(t, frame.MemberStandby, refused.Status)
	require.Equal(t, ("follows b" + strings.Repeat("!", 300))[:255], refused.Reason)
}

// relay sits between an opener and the server, and keeps what the opener says. change may alter each
// piece.
func relay(t *testing.T, s *server, change func(n int, piece []byte) []byte) (addr string, said *[][]byte) {
	t.Helper()
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	require.NoError(t, err)
	said = new([][]byte)
	done := make(chan struct{})
	t.Cleanup(func() { l.Close(); <-done })
	go func() {
		defer close(done)
		c, err := l.Accept()
		if err != nil {
			return
		}
		defer c.Close()
		out, err := net.Dial("tcp4", s.addr)
		if err != nil {
			return
		}
		back := make(chan struct{})
		go func() {
			defer close(back)
			_, _ = io.Copy(c, out)
			c.Close()
		}()
		piece := make([]byte, 64<<10)
		for {
			n, err := c.Read(piece)
			if err != nil {
				break
			}
			*said = append(*said, bytes.Clone(piece[:n]))
			if _, err := out.Write(change(len(*said), piece[:n])); err != nil {
				break
			}
		}
		out.Close()
		<-back
	}()
	return l.Addr().String(), said
}

func unchanged(_ int, piece []byte) []byte { return piece }

func TestAHandshakeCannotBeReplayed(t *testing.T) {
	s := listen(t, secrets(t, secret), nil)
	addr, said := relay(t, s, unchanged)
	c, err := member.Dial(t.Context(), addr, member.Options{Secrets: secrets(t, secret), Kind: frame.MemberCluster})
	require.NoError(t, err)
	c.Close()
	require.NoError(t, s.next().err)
	again := s.dial()
	_, err = again.Write(bytes.Join(*said, nil))
	require.NoError(t, err)
	require.ErrorContains(t, s.next().err, "does not know the secret")
	answer, _ := io.ReadAll(again)
	require.LessOrEqual(t, len(answer), 35, "nothing but the challenge")
}

// Whoever changes a handshake on its way, the name or the client for example, breaks it.
func TestAHandshakeCannotBeChanged(t *testing.T) {
	o := member.Options{Secrets: secrets(t, secret), Kind: frame.MemberData, Name: "a", Client: &access.Client{Address: "192.0.2.7:4711"}}
	for message, places := range map[int][]int{1: {2, 10, 36}, 2: {0, 31, 34, 40}} {
		for _, at := range places {
			s := listen(t, secrets(t, secret), nil)
			addr, _ := relay(t, s, func(n int, piece []byte) []byte {
				if n == message {
					piece[at]++
				}
				return piece
			})
			_, err := member.Dial(t.Context(), addr, o)
			require.Error(t, err, "message %d, byte %d", message, at)
			require.Error(t, s.next().err)
		}
	}
}

// A server that does not know the secret cannot pretend to be a member, not even by sending the
// opener's own proof back.
func TestAnAcceptorProvesItselfToo(t *testing.T) {
	for name, pretend := range map[string]func(proof frame.MemberProof) frame.MemberWelcome{
		"zeros":      func(frame.MemberProof) frame.MemberWelcome { return frame.MemberWelcome{} },
		"reflection": func(p frame.MemberProof) frame.MemberWelcome { return frame.MemberWelcome{MAC: p.MAC} },
		"refusal":    func(frame.MemberProof) frame.MemberWelcome { return frame.MemberWelcome{Status: frame.MemberStandby} },
	} {
		t.Run(name, func(t *testing.T) {
			l, err := net.Listen("tcp4", "127.0.0.1:0")
			require.NoError(t, err)
			defer l.Close()
			done := make(chan struct{})
			go func() {
				defer close(done)
				c, err := l.Accept()
				if err != nil {
					return
				}
				defer c.Close()
				buf := make([]byte, 1024)
				_, _ = c.Read(buf)
				_, _ = c.Write(frame.AppendMemberChallenge(nil, frame.MemberChallenge{Version: 1, Method: frame.MemberBySecret}))
				n, _ := c.Read(buf)
				proof, _, err := frame.DecodeMemberProof(buf[:n])
				if err == nil {
					_, _ = c.Write(frame.AppendMemberWelcome(nil, pretend(proof)))
				}
			}()
			_, err = member.Dial(t.Context(), l.Addr().String(), member.Options{Secrets: secrets(t, secret), Kind: frame.MemberData})
			require.ErrorContains(t, err, "does not know the secret of the cluster")
			require.NotErrorAs(t, err, new(*member.Refused))
			<-done
		})
	}
}

// An opener with a secret does not let itself be talked into going without.
func TestNoDowngrade(t *testing.T) {
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	require.NoError(t, err)
	defer l.Close()
	done := make(chan error, 1)
	go func() {
		c, err := l.Accept()
		if err == nil {
			defer c.Close()
			buf := make([]byte, 1024)
			_, _ = c.Read(buf)
			_, _ = c.Write(frame.AppendMemberChallenge(nil, frame.MemberChallenge{Version: 1, Method: frame.MemberByCertificate}))
			var n int
			if n, err = c.Read(buf); n > 0 {
				err = errors.New("the opener has gone on")
			}
		}
		done <- err
	}()
	_, err = member.Dial(t.Context(), l.Addr().String(), member.Options{Secrets: secrets(t, secret), Kind: frame.MemberData})
	require.ErrorContains(t, err, "does not trust it")
	require.ErrorIs(t, <-done, io.EOF)
}

func TestWhatIsNoHandshake(t *testing.T) {
	opening := frame.AppendMemberOpening(nil, frame.MemberOpening{Version: 1, Kind: frame.MemberData})
	zeros := make([]byte, 1<<20)
	for name, c := range map[string]struct {
		bytes []byte
		text  string
	}{
		"huge client":  {append(bytes.Clone(opening), bytes.Repeat([]byte{0xff}, 34)...), "over the limit"},
		"zeros":        {append(bytes.Clone(opening), zeros...), ""},
		"cut":          {opening[:20], "EOF"},
		"only a magic": {opening[:1], "EOF"},
	} {
		t.Run(name, func(t *testing.T) {
			s := listen(t, secrets(t, secret), nil)
			conn := s.dial()
			_, _ = conn.Write(c.bytes)
			_ = conn.(*net.TCPConn).CloseWrite() // fails if the server has closed already
			require.ErrorContains(t, s.next().err, c.text)
			answer, _ := io.ReadAll(conn)
			require.LessOrEqual(t, len(answer), 35)
		})
	}
}

// Bytes behind the proof would come from somebody who speaks before the welcome.
func TestAnOpenerWaitsForItsWelcome(t *testing.T) {
	s := listen(t, secrets(t, secret), nil)
	addr, _ := relay(t, s, func(n int, piece []byte) []byte {
		if n == 2 {
			return append(piece, "more"...)
		}
		return piece
	})
	_, err := member.Dial(t.Context(), addr, member.Options{Secrets: secrets(t, secret), Kind: frame.MemberData})
	require.Error(t, err)
	require.ErrorContains(t, s.next().err, "before this server has let it in")
}

func TestDialEndsWithItsContext(t *testing.T) {
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	require.NoError(t, err)
	defer l.Close()
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	_, err = member.Dial(ctx, l.Addr().String(), member.Options{Secrets: secrets(t, secret), Kind: frame.MemberData})
	require.ErrorIs(t, err, context.DeadlineExceeded)
}

// Wrong proofs are counted with wrong passwords: after some of them each further one takes longer.
func TestWrongProofsAreThrottled(t *testing.T) {
	g := accesstest.Guard(t, "allow anyone read")
	s := listen(t, secrets(t, secret), func(a *member.Acceptor) { a.Guard = g })
	try := func() time.Duration {
		began := time.Now()
		_, err := member.Dial(t.Context(), s.addr, member.Options{Secrets: secrets(t, other), Kind: frame.MemberData})
		require.Error(t, err)
		return time.Since(began)
	}
	for range 4 {
		try()
	}
	require.GreaterOrEqual(t, try(), 100*time.Millisecond)
}

func TestFilesOfSecrets(t *testing.T) {
	for name, c := range map[string]struct {
		text string
		mode os.FileMode
		want string
	}{
		"good":           {secret + "\n", 0o600, ""},
		"for the group":  {secret + "\n", 0o640, ""},
		"two":            {"\n" + secret + "\r\n\n  " + other + "  \n", 0o400, ""},
		"world-readable": {secret, 0o604, "chmod 600"},
		"world-writable": {secret, 0o602, "chmod 600"},
		"group-writable": {secret, 0o620, "chmod 600"},
		"empty":          {"\n \n", 0o600, "there is no secret"},
		"short":          {secret + "\n" + secret[1:], 0o600, "line 2 has 31 characters"},
		"many":           {strings.Repeat(secret+"\n", 17), 0o600, "more than 16"},
		"huge":           {strings.Repeat(secret, 1<<12), 0o600, "at most 65536 bytes"},
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "secret")
			require.NoError(t, os.WriteFile(path, []byte(c.text), 0o600))
			require.NoError(t, os.Chmod(path, c.mode))
			_, err := member.ReadSecrets(path, nil)
			if c.want == "" {
				require.NoError(t, err)
				return
			}
			require.ErrorContains(t, err, c.want)
			require.NotContains(t, err.Error(), secret[1:])
		})
	}
	_, err := member.ReadSecrets(t.TempDir(), nil)
	require.ErrorContains(t, err, "is no file")
	_, err = member.ReadSecrets(filepath.Join(t.TempDir(), "absent"), nil)
	require.ErrorIs(t, err, os.ErrNotExist)
}

// A file that has changed counts from the next look on; one that cannot be used changes nothing.
func TestSecretsAreReadAgain(t *testing.T) {
	path := filepath.Join(t.TempDir(), "secret")
	write := func(text string) { require.NoError(t, os.WriteFile(path, []byte(text), 0o600)) }
	write(secret)
	var log text
	there, err := member.ReadSecrets(path, slog.New(slog.NewTextHandler(&log, nil)))
	require.NoError(t, err)
	s := listen(t, there, nil)
	try := func(with string) error {
		c, err := member.Dial(t.Context(), s.addr, member.Options{Secrets: secrets(t, with), Kind: frame.MemberData})
		if err == nil {
			c.Close()
		}
		return err
	}
	require.NoError(t, try(secret))
	write("short")
	there.Poll()
	there.Poll()
	require.NoError(t, try(secret))
	require.Equal(t, 1, strings.Count(log.String(), "stays as it is"))
	write(other)
	there.Poll()
	require.Error(t, try(secret))
	require.NoError(t, try(other))
}
