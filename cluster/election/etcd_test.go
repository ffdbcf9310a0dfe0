package election

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestParseEtcd(t *testing.T) {
	for address, want := range map[string]EtcdConfig{
		"http://a:2379": {Endpoints: []string{"http://a:2379"}, Prefix: "/gotycoon"},
		"https://a:1,[::1]:2/x/y/": {
			Endpoints: []string{"https://a:1", "https://[::1]:2"}, Prefix: "/x/y",
		},
		"http://me:p%40ss@a:1,b:2/k": {
			Endpoints: []string{"http://a:1", "http://b:2"}, Prefix: "/k", User: "me", Password: "p@ss",
		},
	} {
		got, err := ParseEtcd(address)
		require.NoError(t, err)
		require.Equal(t, want, got)
	}
	for _, bad := range []string{"", "a:2379", "ftp://a:1", "http://", "http://a:1,", "http://a:x/p", "http://%zz@a:1"} {
		_, err := ParseEtcd(bad)
		require.ErrorContains(t, err, "write http://a:2379", bad)
	}
}

func TestConfigurationsThatAreRefused(t *testing.T) {
	a := []Member{{Name: "a"}}
	for want, c := range map[string]RaftConfig{
		"needs a name":          {Transport: sendFunc(nil)},
		"needs a transport":     {Name: "a"},
		"give at least":         {Name: "a", Transport: sendFunc(nil), ElectionTicks: 2},
		"stands twice":          {Name: "a", Transport: sendFunc(nil), Members: []Member{{Name: "a"}, {Name: "a"}}},
		"no witness":            {Name: "a", Transport: sendFunc(nil), Members: []Member{{Name: "a", Witness: true}}},
		"does not contain":      {Name: "b", Transport: sendFunc(nil), Members: a},
		"a directory of its":    {Name: "a", Transport: sendFunc(nil), Members: a, Dir: otherDir(t)},
		"directory of the elec": {Name: "a", Transport: sendFunc(nil), Members: a, Dir: "/dev/null/x"},
	} {
		_, err := OpenRaft(c)
		require.ErrorContains(t, err, want)
	}
	for want, c := range map[string]EtcdConfig{
		"needs a name":     {Cluster: "c"},
		"no address":       {Cluster: "c", Name: "a"},
		"does not contain": {Cluster: "c", Name: "b", Endpoints: []string{"http://a:1"}, Members: a},
	} {
		_, err := OpenEtcd(c)
		require.ErrorContains(t, err, want)
	}
}

// otherDir returns the directory of a member called b.
func otherDir(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	r, err := OpenRaft(RaftConfig{
		Name: "b", Dir: dir, Members: []Member{{Name: "b"}}, Transport: sendFunc(nil),
	})
	require.NoError(t, err)
	require.NoError(t, r.Close())
	return dir
}

// etcdMember starts the only member of a cluster.
func etcdMember(t *testing.T, c EtcdConfig) *Etcd {
	t.Helper()
	c.Cluster, c.Name, c.Members = "test", "a", []Member{{Name: "a"}}
	e, err := OpenEtcd(c)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, e.Close()) })
	return e
}

// mustCall sends a request that may be sent again, for an etcd on a busy machine takes its time.
func mustCall(t *testing.T, c *etcdClient, path string, request any) {
	t.Helper()
	require.Eventually(t, func() bool {
		var reply struct{}
		_, err := c.call(t.Context(), path, request, &reply)
		return err == nil || strings.Contains(err.Error(), "already")
	}, patience, 10*time.Millisecond)
}

func awaitLease(t *testing.T, e Elector) uint64 {
	t.Helper()
	var term uint64
	require.Eventually(t, func() bool { term, _ = e.Lease(); return term != 0 }, patience, 5*time.Millisecond)
	return term
}

// A leader that does not reach etcd leads until its lease is over, and then no more.
func TestEtcdStandsStill(t *testing.T) {
	t.Parallel()
	etcd, err := url.Parse(startEtcd(t))
	require.NoError(t, err)
	proxy := httputil.NewSingleHostReverseProxy(etcd)
	proxy.ErrorHandler = func(http.ResponseWriter, *http.Request, error) { panic(http.ErrAbortHandler) }
	gate := make(chan bool, 1) // holds a token while requests go through
	gate <- true
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		select {
		case gate <- <-gate:
			proxy.ServeHTTP(w, r)
		case <-r.Context().Done():
		}
	}))
	t.Cleanup(s.Close)
	e := etcdMember(t, EtcdConfig{Endpoints: []string{s.URL}, Prefix: "/p"})
	term := awaitLease(t, e)
	require.NoError(t, e.Propose(t.Context(), term, add))
	<-gate
	require.Eventually(t, func() bool { _, leads := e.Leading(); return !leads }, patience, 5*time.Millisecond)
	lease, _ := e.Lease()
	require.Zero(t, lease)
	gate <- true
	require.Greater(t, awaitLease(t, e), term)
	require.Equal(t, 1, e.State().Required)
}

// A change is under way when the answer of etcd is lost. Whoever gives up does not know.
func TestEtcdLosesAnswers(t *testing.T) {
	t.Parallel()
	p := newParty(t, openEtcdGuest, nil)
	p.etcd = startEtcd(t)
	p.invite([]string{"a"})
	e := p.leader().elector()
	for range 5 {
		before := p.mustPropose().Required
		term := awaitLease(t, e)
		p.isolate("a", true, false) // requests arrive, answers do not
		ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
		require.ErrorIs(t, e.Propose(ctx, term, add), ErrUnknown)
		cancel()
		p.heal()
		// The next change is made of the State after the one that nobody knows of, if that was made.
		got := p.mustPropose().Required
		require.GreaterOrEqual(t, got, before+1)
		require.LessOrEqual(t, got, before+2)
	}
}

// A change of which the first answer is lost is sent again, and takes place once.
func TestEtcdAnswersTheSecondTime(t *testing.T) {
	t.Parallel()
	p := newParty(t, openEtcdGuest, nil)
	p.etcd = startEtcd(t)
	p.invite([]string{"a"})
	e := p.leader().elector()
	term, _ := e.Leading()
	p.isolate("a", true, false)
	time.AfterFunc(100*time.Millisecond, p.heal)
	require.NoError(t, e.Propose(t.Context(), term, add))
	require.Equal(t, 1, e.State().Required)
}

// A usurper is a network on which another member takes over, and changes the State, before the
// answer to a change is lost.
type usurper struct {
	t      *testing.T
	client *etcdClient
	strike atomic.Bool
}

func (u *usurper) RoundTrip(req *http.Request) (*http.Response, error) {
	body, err := io.ReadAll(req.Body)
	if err != nil {
		return nil, err
	}
	req.Body = io.NopCloser(bytes.NewReader(body))
	key := func(name string) []byte { return []byte("/p/test/" + name) }
	changes := bytes.Contains(body, []byte(base64.StdEncoding.EncodeToString(key("state"))+`","value"`))
	if !changes || !u.strike.CompareAndSwap(true, false) {
		return http.DefaultTransport.RoundTrip(req)
	}
	resp, err := http.DefaultTransport.RoundTrip(req)
	if err != nil {
		return nil, err
	}
	resp.Body.Close()
	_, err = u.client.call(u.t.Context(), "/v3/kv/txn", etcdTxn{Success: []etcdOp{
		put(key("leader"), []byte(`{"term":1000,"name":"b","life":"x"}`)),
		put(key("state"), []byte(`{"members":[{"name":"a"},{"name":"b"}],"version":1000}`)),
	}}, &etcdTxnReply{})
	if err != nil {
		u.t.Errorf("%v", err)
	}
	return nil, errCut
}

// An etcd makes a change, its answer is lost, and another member leads when the next etcd answers:
// nobody knows any more that the change was made, and so nobody says that it was not.
func TestEtcdLosesTheAnswerOfOneEndpoint(t *testing.T) {
	t.Parallel()
	url := startEtcd(t)
	u := &usurper{t: t, client: &etcdClient{endpoints: []string{url}, timeout: patience}}
	e, err := OpenEtcd(EtcdConfig{
		Endpoints: []string{url, strings.Replace(url, "127.0.0.1", "localhost", 1)}, Prefix: "/p", Cluster: "test", Name: "a",
		Members: []Member{{Name: "a"}, {Name: "b"}}, transport: u,
	})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, e.Close()) })
	term := awaitLease(t, e)
	u.strike.Store(true)
	require.ErrorIs(t, e.Propose(t.Context(), term, add), ErrUnknown)
	require.False(t, u.strike.Load())
}

func TestEtcdEndpointsUserAndTLS(t *testing.T) {
	t.Parallel()
	address := startEtcd(t)
	root := &etcdClient{endpoints: []string{address}, timeout: patience}
	for _, step := range []struct {
		path    string
		request map[string]string
	}{
		{"user/add", map[string]string{"name": "root", "password": "secret"}},
		{"role/add", map[string]string{"name": "root"}},
		{"user/grant", map[string]string{"user": "root", "role": "root"}},
		{"enable", map[string]string{}},
	} {
		mustCall(t, root, "/v3/auth/"+step.path, step.request)
	}
	etcd, err := url.Parse(address)
	require.NoError(t, err)
	proxy := httputil.NewSingleHostReverseProxy(etcd)
	proxy.ErrorLog = log.New(io.Discard, "", 0)
	s := httptest.NewTLSServer(proxy)
	t.Cleanup(s.Close)
	ca := x509.NewCertPool()
	ca.AddCert(s.Certificate())
	c := EtcdConfig{
		Endpoints: []string{"https://127.0.0.1:1", s.URL}, Prefix: "/p",
		User: "root", Password: "secret", TLS: &tls.Config{RootCAs: ca}, Timeout: patience / 2,
	}
	e := etcdMember(t, c)
	term := awaitLease(t, e)
	e.client.mu.Lock()
	e.client.token = "expired"
	e.client.mu.Unlock()
	require.Eventually(t, func() bool { return e.Propose(t.Context(), term, add) == nil || awaitLease(t, e) > term },
		patience, 5*time.Millisecond)

	wrong := &etcdClient{endpoints: []string{address}, user: "root", password: "wrong", timeout: patience}
	var reply etcdRangeReply
	_, err = wrong.call(t.Context(), "/v3/kv/range", etcdRange{Key: []byte("x")}, &reply)
	require.ErrorContains(t, err, "log in to etcd as root")
	nobody := &etcdClient{endpoints: []string{address}, timeout: patience}
	_, err = nobody.call(t.Context(), "/v3/kv/range", etcdRange{Key: []byte("x")}, &reply)
	require.ErrorIs(t, err, errTokenNeeded)
}

// Somebody removes the keys. Nothing is made of that but an error.
func TestEtcdKeysVanish(t *testing.T) {
	t.Parallel()
	address := startEtcd(t)
	e := etcdMember(t, EtcdConfig{Endpoints: []string{address}, Prefix: "/p"})
	term := awaitLease(t, e)
	mustCall(t, e.client, "/v3/kv/deleterange", etcdRange{Key: e.keys.prefix, End: e.keys.end})
	require.Error(t, e.Propose(t.Context(), term, add))
	require.Eventually(t, func() bool { _, leads := e.Leading(); return !leads }, patience, 5*time.Millisecond)
	require.Eventually(t, func() bool {
		err := e.watch()
		return err != nil && strings.Contains(err.Error(), "restore it")
	}, patience, 5*time.Millisecond)
}
