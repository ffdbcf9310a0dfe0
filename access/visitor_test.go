package access

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"log/slog"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"gotycoon/internal/klog/klogtest"
)

func basicHeader(user, password string) []byte {
	return []byte("Basic " + base64.StdEncoding.EncodeToString([]byte(user+":"+password)))
}

const tokenText = "0123456789abcdef0123456789abcdef"

func tokenLine(t *testing.T, name string) string {
	t.Helper()
	digest, err := HashToken([]byte(tokenText))
	require.NoError(t, err)
	return "token " + name + " " + digest
}

func TestANilGuardAndANilVisitorAllowEverything(t *testing.T) {
	var g *Guard
	g.Poll()
	g.Reload()
	g.Close()
	require.NoError(t, g.Authorize(&http.Request{RemoteAddr: "10.0.0.1:1"}, true))
	v := g.Visit(fakeConn{addr: textAddr("10.0.0.1:1")})
	require.Nil(t, v)
	require.NoError(t, v.Enter())
	require.NoError(t, v.Present([]byte("nonsense")))
	require.NoError(t, v.Key(Admin, orders, nil))
	require.NoError(t, v.Database(Admin, orders))
	require.NoError(t, v.Server(Admin))
	require.NoError(t, v.Service(Admin, Lock))
	v.While(Admin, nil, nil)()
}

func TestRules(t *testing.T) {
	f := open(t, "anna:"+hashOf(t, "secret"), tokenLine(t, "ci"),
		"allow anna read db=orders.kct prefix=eu:",
		"allow anna write db=0 prefix=eu:x",
		"allow anna read db=1",
		"allow anna read service=quota",
		"allow ci read",
		"allow ci admin from=10.1.0.0/16",
		"allow anyone read db=other.kch from=10.2.0.0/16")
	v := f.from("10.9.9.9:1")
	requireDenied(t, v.Enter(), 401, "needs a user")

	require.NoError(t, v.Present(basicHeader("anna", "secret")))
	require.NoError(t, v.Enter())
	require.NoError(t, v.Key(Read, orders, []byte("eu:1")))
	requireDenied(t, v.Key(Read, orders, []byte("us:1")), 403, "anna has no right to read for this key of database 0 (orders.kct)")
	requireDenied(t, v.Key(Write, orders, []byte("eu:1")), 403, "no right to write")
	require.NoError(t, v.Key(Read|Write, orders, []byte("eu:x1")), "two rules together")
	requireDenied(t, v.Database(Read, orders), 403, "the whole database")
	require.NoError(t, v.Database(Read, other))
	requireDenied(t, v.Server(Read), 403, "the whole server")
	require.NoError(t, v.Service(Read, Quota))
	requireDenied(t, v.Service(Read, Lock), 403, "the service lock")
	requireDenied(t, v.Service(Write, Quota), 403, "the service quota")

	require.NoError(t, v.Present([]byte("Bearer "+tokenText)))
	require.NoError(t, v.Server(Read))
	require.NoError(t, v.Service(Read, Counter))
	requireDenied(t, v.Server(Admin), 403, "ci has no right to admin")
	requireDenied(t, v.Server(Replicate), 403, "ci has no right to replicate")

	require.NoError(t, v.Present(nil))
	requireDenied(t, v.Database(Read, other), 401, "needs a user")

	near := f.from("10.1.0.1:1")
	require.NoError(t, near.Present([]byte("Bearer "+tokenText)))
	require.NoError(t, near.Server(Read|Write|Replicate|Admin))

	open := f.from("[::ffff:10.2.0.1]:1")
	require.NoError(t, open.Database(Read, other))
	requireDenied(t, open.Database(Write, other), 401, "without a user or token")
	requireDenied(t, open.Present(basicHeader("anna", "wrong")), 401, "wrong password")
	requireDenied(t, open.Present([]byte("Bearer nonsense")), 401, "unknown token")
	requireDenied(t, open.Present([]byte("nonsense")), 401, "wrong password")
}

func TestLocalIsThisMachine(t *testing.T) {
	f := open(t, "allow anyone read from=local")
	require.NoError(t, f.from("127.0.0.1:1").Enter())
	require.NoError(t, f.from("[::1]:1").Enter())
	require.NoError(t, f.Visit(fakeConn{addr: &net.UnixAddr{Name: "@", Net: "unix"}}).Enter(), "a socket in a directory")
	require.Error(t, f.from("192.0.2.1:1").Enter())
	addrs, err := net.InterfaceAddrs()
	require.NoError(t, err)
	for _, a := range addrs {
		require.NoError(t, f.from(net.JoinHostPort(a.(*net.IPNet).IP.String(), "1")).Enter(), a)
	}
}

func TestProtectionByDefault(t *testing.T) {
	log := new(klogtest.Buffer)
	g, err := Open(Options{Logger: slog.New(slog.NewTextHandler(log, nil))})
	require.NoError(t, err)
	defer g.Close()
	require.True(t, g.Protects())
	require.Nil(t, g.Visit(fakeConn{addr: textAddr("127.0.0.1:1")}))
	v := g.Visit(fakeConn{addr: textAddr("192.0.2.1:1")})
	for _, err := range []error{v.Enter(), v.Key(Read, orders, nil), v.Server(0), v.Service(0, Lock)} {
		requireDenied(t, err, 403, "-host 0.0.0.0")
		requireDenied(t, err, 403, "-access FILE")
	}
	require.NoError(t, v.Present([]byte("Bearer x")), "nothing to compare it with")
	require.False(t, v.Login(context.Background(), "anna", nil))
	require.NoError(t, g.Authorize(&http.Request{RemoteAddr: "127.0.0.1:1"}, true))
	requireDenied(t, g.Authorize(&http.Request{RemoteAddr: "192.0.2.1:1"}, false), 403, "-access FILE")
	g.Poll()
	for range 100 {
		_ = v.Enter()
	}
	require.Contains(t, log.String(), "refused 192.0.2.1:1, which is on another machine, 1 so far")
	require.Less(t, strings.Count(log.String(), "\n"), 10)
}

func TestLoginLastsUntilThePasswordChanges(t *testing.T) {
	line := "anna:" + hashOf(t, "secret")
	f := open(t, line, "allow anna write")
	v := f.from("10.0.0.1:1")
	require.False(t, v.Login(context.Background(), "anna", []byte("wrong")))
	require.False(t, v.Login(context.Background(), "nobody", []byte("secret")))
	require.Error(t, v.Server(Write))
	require.True(t, v.Login(context.Background(), "anna", []byte("secret")))
	require.NoError(t, v.Server(Write))

	f.write(line, "allow anna read")
	f.Reload()
	requireDenied(t, v.Server(Write), 403, "anna has no right to write")
	require.NoError(t, v.Server(Read))

	f.write("anna:"+hashOf(t, "secret"), "allow anna read") // the same password is another hash
	f.Reload()
	requireDenied(t, v.Server(Read), 401, "needs a user")
}

// A request of HTTP is decided by the rules of its beginning, the next one by those of then.
func TestARequestIsDecidedByOneFile(t *testing.T) {
	line := "anna:" + hashOf(t, "secret")
	f := open(t, line, "allow anna read")
	v := f.from("10.0.0.1:1")
	require.NoError(t, v.Present(basicHeader("anna", "secret")))
	f.write(line)
	f.Reload()
	require.NoError(t, v.Server(Read))
	require.NoError(t, v.Present(basicHeader("anna", "secret")))
	requireDenied(t, v.Server(Read), 403, "anna has no right to read")
	requireDenied(t, v.Enter(), 403, "anna has no rights here")
}

func TestStreamsAreCutWhenTheRightIsTaken(t *testing.T) {
	rule := "allow anyone replicate from=10.0.0.0/8"
	f := open(t, rule)
	cut := make(chan string, 3)
	for _, addr := range []string{"10.0.0.1:1", "10.0.0.2:1", "10.0.0.3:1"} {
		v := f.from(addr)
		require.NoError(t, v.Server(Replicate))
		done := v.While(Replicate, nil, func() { cut <- addr })
		if addr == "10.0.0.3:1" {
			done()
		}
	}
	f.write(rule, "# nothing new")
	f.Reload()
	require.Empty(t, cut)
	f.write("allow anyone replicate from=10.0.0.1")
	f.Reload()
	require.Equal(t, "10.0.0.2:1", <-cut)
	require.Empty(t, cut)
}

func TestAuthorize(t *testing.T) {
	f := open(t, "anna:"+hashOf(t, "secret"), tokenLine(t, "root"), "allow anna read", "allow root admin")
	request := func(header []byte) *http.Request {
		r := httptest.NewRequest(http.MethodGet, "/metrics", nil)
		if header != nil {
			r.Header.Set("Authorization", string(header))
		}
		return r
	}
	requireDenied(t, f.Authorize(request(nil), false), 401, "needs a user")
	requireDenied(t, f.Authorize(request(basicHeader("anna", "no")), false), 401, "wrong password")
	require.NoError(t, f.Authorize(request(basicHeader("anna", "secret")), false))
	requireDenied(t, f.Authorize(request(basicHeader("anna", "secret")), true), 403, "no right to admin")
	require.NoError(t, f.Authorize(request([]byte("Bearer "+tokenText)), true))
}

// issue makes a certificate that is signed by another, or by itself.
func issue(t *testing.T, name string, by *tls.Certificate) *tls.Certificate {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(time.Now().UnixNano()), Subject: pkix.Name{CommonName: name}, DNSNames: []string{name + ".example.com"},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth, x509.ExtKeyUsageServerAuth},
		IsCA:        by == nil, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
	}
	parent, signer := template, any(key)
	if by != nil {
		parent, signer = by.Leaf, by.PrivateKey
	}
	der, err := x509.CreateCertificate(rand.Reader, template, parent, &key.PublicKey, signer)
	require.NoError(t, err)
	leaf, err := x509.ParseCertificate(der)
	require.NoError(t, err)
	return &tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key, Leaf: leaf}
}

func TestCertificates(t *testing.T) {
	ca := issue(t, "ca", nil)
	pool := x509.NewCertPool()
	pool.AddCert(ca.Leaf)
	f := open(t, "cert node2", "cert node3 node3.example.com", "allow node2 replicate", "allow node3 read", "allow anyone read db=1")
	for _, row := range []struct {
		name string
		auth tls.ClientAuthType
		need Rights
	}{
		{"node2", tls.RequireAndVerifyClientCert, Replicate},
		{"node3", tls.RequireAndVerifyClientCert, Read},
		{"node4", tls.RequireAndVerifyClientCert, 0},
		{"node2", tls.RequireAnyClientCert, 0}, // not verified
	} {
		near, far := net.Pipe()
		server := tls.Server(near, &tls.Config{Certificates: []tls.Certificate{*issue(t, "server", ca)}, ClientAuth: row.auth, ClientCAs: pool})
		client := tls.Client(far, &tls.Config{Certificates: []tls.Certificate{*issue(t, row.name, ca)}, RootCAs: pool, ServerName: "server.example.com"})
		v := f.Visit(server)
		require.Error(t, v.Server(Read), "before the handshake")
		shaken := make(chan error, 1)
		go func() { shaken <- client.Handshake() }()
		require.NoError(t, server.Handshake())
		require.NoError(t, <-shaken)
		for _, need := range []Rights{Read, Replicate} {
			if need == row.need {
				require.NoError(t, v.Server(need), row.name)
			} else {
				require.Error(t, v.Server(need), row.name)
			}
		}
		if row.need != 0 {
			requireDenied(t, v.Server(Admin), 403, row.name+" has no right to admin")
		} else {
			requireDenied(t, v.Server(Admin), 401, "without a user or token")
		}
		state := server.ConnectionState()
		err := f.Authorize(&http.Request{RemoteAddr: "10.0.0.1:1", TLS: &state}, false)
		require.Equal(t, row.need == Read, err == nil, row.name)
		near.Close()
		far.Close()
	}
}

// On a connection that goes on with a protocol without credentials those of earlier requests do not
// count, and changes do.
func TestAnonymousEndsWhatPresentHasBegun(t *testing.T) {
	f := open(t, "anna:"+hashOf(t, "secret"), "allow anna read", "allow anyone read db=1")
	v := f.from("10.0.0.1:1")
	v.Anonymous()
	require.NoError(t, v.Present(basicHeader("anna", "secret")))
	require.NoError(t, v.Server(Read))
	v.Anonymous()
	requireDenied(t, v.Server(Read), 401, "without a user or token")
	require.NoError(t, v.Database(Read, other))
	f.write("allow anyone read db=0")
	f.Reload()
	requireDenied(t, v.Database(Read, other), 401, "without a user or token")
	(*Visitor)(nil).Anonymous()
}

func TestOutdated(t *testing.T) {
	f := open(t, "allow anyone read")
	v := f.from("10.0.0.1:1")
	require.False(t, v.Outdated())
	require.NoError(t, v.Present(nil))
	require.False(t, v.Outdated())
	f.write("allow anyone write")
	f.Reload()
	require.True(t, v.Outdated())
	require.NoError(t, v.Present(nil))
	require.False(t, v.Outdated())
	require.False(t, (*Visitor)(nil).Outdated())
}

// The rules may change between the look at them and the beginning of a stream.
func TestAStreamThatBeginsTooLateIsCut(t *testing.T) {
	f := open(t, "allow anyone replicate db=1")
	v := f.from("10.0.0.1:1")
	require.NoError(t, v.Database(Replicate, other))
	cut := make(chan string, 2)
	v.While(Replicate, other, func() { cut <- "users" })()
	require.Empty(t, cut)
	f.write("allow anyone replicate db=0")
	f.Reload()
	v.While(Replicate, orders, func() { cut <- "orders" })()
	require.Empty(t, cut)
	v.While(Replicate, other, func() { cut <- "users" })()
	require.Equal(t, "users", <-cut)
}

func TestAnAddressThatCannotBeReadIsNotThisMachine(t *testing.T) {
	f := open(t, "allow anyone read from=local,0.0.0.0/0,::/0")
	require.NoError(t, f.from("127.0.0.1:1").Server(Read))
	requireDenied(t, f.from("somewhere").Server(Read), 401, "needs a user")
	requireDenied(t, f.Visit(fakeConn{}).Server(Read), 401, "needs a user")
	g, err := Open(Options{})
	require.NoError(t, err)
	defer g.Close()
	require.Error(t, g.Visit(fakeConn{addr: textAddr("somewhere")}).Enter())
}

func TestRightPasswordsAreRememberedWhenTheFileChanges(t *testing.T) {
	anna := "anna:" + hashOf(t, "secret")
	f := open(t, anna, "allow anna read")
	v := f.from("10.0.0.1:1")
	require.NoError(t, v.Present(basicHeader("anna", "secret")))
	f.write(anna, "allow anna write")
	f.Reload()
	require.Len(t, f.logins.right, 1)
	for range freeTries + 1 {
		require.Error(t, f.from("10.0.0.1:1").Present(basicHeader("anna", "wrong")))
	}
	require.NoError(t, v.Present(basicHeader("anna", "secret")), "others at the same address guess, and the clock stands still")
	f.write("anna:"+hashOf(t, "other"), "allow anna write")
	f.Reload()
	f.clock.add(longestWait)
	require.Error(t, v.Present(basicHeader("anna", "secret")))
}

func TestNamesOfDatabasesThatDoNotExistAreInTheLog(t *testing.T) {
	f := open(t, "allow anyone read db=orders.kct,1,*", "allow anyone write db=order.kct,7", tokenLine(t, "ci"), "allow ci read db=order.kct")
	require.NotContains(t, f.log.String(), "db=")
	f.Serves([]Database{orders, other})
	require.Contains(t, f.log.String(), `db= for [\"7\" \"order.kct\"]`)
	f.write("allow anyone read db=nosuch prefix=a")
	f.Reload()
	require.Contains(t, f.log.String(), `db= for [\"nosuch\"]`)
	(*Guard)(nil).Serves(nil)
}

// While others guess passwords, a client with the right password is not told that it is wrong.
func TestAPasswordThatWasNotLookedAtIsNotWrong(t *testing.T) {
	f := open(t, "anna:"+hashOf(t, "secret"), "allow anna read")
	for range freeTries + 10 {
		f.slow.fail(peerOf(textAddr("10.0.0.1:1")).addr, f.clock.get())
	}
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	v := f.from("10.0.0.1:1")
	requireDenied(t, v.present(ctx, basicHeader("anna", "secret")), 401, "was not looked at") // the clock stands still
	f.clock.add(longestWait)
	require.NoError(t, v.Present(basicHeader("anna", "secret")))
}

// What is shared out among clients is shared by name, or by address where there is none.
func TestWho(t *testing.T) {
	f := open(t, "anna:"+hashOf(t, "secret"), "allow anna read", "allow anyone read")
	v := f.from("10.0.0.1:1")
	require.Equal(t, "address 10.0.0.1/32", v.Who(Client{Address: "10.0.0.1:1"}))
	require.NoError(t, v.Present(basicHeader("anna", "secret")))
	require.Equal(t, "user anna", v.Who(Client{Address: "10.0.0.1:1"}))
	var nobody *Visitor
	require.Equal(t, "address 2001:db8::/64", nobody.Who(Client{Address: "[2001:db8::7]:1"}), "a network of IPv6 is one client")
	require.Empty(t, new(Visitor).Name())
}
