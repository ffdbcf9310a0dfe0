package election

import (
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"
)

// EtcdConfig is what OpenEtcd needs.
type EtcdConfig struct {
	Endpoints []string // such as http://a:2379
	Prefix    string   // of the keys, such as /gotycoon
	User      string   // empty without authentication
	Password  string
	TLS       *tls.Config // for https

	// Cluster is the name of the cluster; several may use one prefix.
	Cluster string

	// Name is this member's own.
	Name string

	// Members are those of a new cluster. The first member that starts writes the list; it is
	// unimportant from then on. A server without the list waits until it is added.
	Members []Member

	Timeout time.Duration // the election timeout, 2.5 s unless given; the same on all members
	Clock   Clock         // the system's, unless given; only Now is used
	Log     *slog.Logger  // nothing is logged without one

	transport http.RoundTripper // for tests
}

// The members' parts of the election timeout.
const (
	defaultEtcdTimeout = 2500 * time.Millisecond
	beatsPerTimeout    = 5  // a leader's beats
	looksPerTimeout    = 20 // how often the others look
	callsPerTimeout    = 4  // how long a request may take
)

// ParseEtcd reads the address of an etcd: http://a:2379,b:2379/prefix or
// https://user:password@a:2379,b:2379/prefix. All servers have the scheme of the first.
func ParseEtcd(address string) (EtcdConfig, error) {
	c := EtcdConfig{Prefix: "/gotycoon"}
	bad := func(why string) (EtcdConfig, error) {
		return EtcdConfig{}, fmt.Errorf("%s in the address of etcd; write http://a:2379,b:2379/prefix", why)
	}
	scheme, rest, ok := strings.Cut(address, "://")
	if !ok || scheme != "http" && scheme != "https" {
		return bad("no http:// or https://")
	}
	hosts, path, _ := strings.Cut(rest, "/")
	if path = strings.Trim(path, "/"); path != "" {
		c.Prefix = "/" + path
	}
	if at := strings.LastIndexByte(hosts, '@'); at >= 0 {
		u, err := url.Parse(scheme + "://" + hosts[:at] + "@x")
		if err != nil {
			return bad("an unreadable user or password")
		}
		c.User = u.User.Username()
		c.Password, _ = u.User.Password()
		hosts = hosts[at+1:]
	}
	for host := range strings.SplitSeq(hosts, ",") {
		u, err := url.Parse(scheme + "://" + host)
		if err != nil || u.Hostname() == "" || u.Host != host {
			return bad(fmt.Sprintf("an unreadable host %q", host))
		}
		c.Endpoints = append(c.Endpoints, u.String())
	}
	return c, nil
}

// filled returns the configuration with defaults.
func (c EtcdConfig) filled() (EtcdConfig, error) {
	if c.Timeout == 0 {
		c.Timeout = defaultEtcdTimeout
	}
	if c.Clock == nil {
		c.Clock = realClock{}
	}
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	if c.transport == nil {
		t := http.DefaultTransport.(*http.Transport).Clone()
		t.TLSClientConfig, t.Proxy = c.TLS, nil
		c.transport = t
	}
	c.Members = slices.Clone(c.Members)
	slices.SortFunc(c.Members, byName)
	switch {
	case c.Name == "" || c.Cluster == "":
		return c, errors.New("election: the member needs a name, and the cluster too")
	case len(c.Endpoints) == 0:
		return c, errors.New("election: no address of an etcd")
	case len(c.Members) > 0:
		return c, checkBootstrap(c.Members, c.Name)
	}
	return c, nil
}
