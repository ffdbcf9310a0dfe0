package server

import (
	"errors"
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"
	"time"

	"gotycoon/cluster"
	"gotycoon/cluster/election"
)

// ClusterConfig makes this server a member of a cluster, whose members elect the primary.
type ClusterConfig struct {
	Name      string // of the cluster (-cluster); empty: this server is in none
	Members   string // of a new cluster: HOST:PORT[/witness],… (-members)
	Advertise string // HOST:PORT by which the others reach this one (-advertise)
	Join      bool   // wait until the cluster has added this server (-join)
	Etcd      string // address of an etcd that holds the votes (-cluster-etcd); empty: the members
	Dir       string // of what the election keeps (-cluster-dir); empty: beside the update log

	// Timeout: a primary that is not heard of for this long is replaced (-election-timeout). 0
	// means 1 s, with an etcd 2.5 s.
	Timeout time.Duration

	// DiskTimeout: a primary whose disk does nothing for this long, although updates wait for it,
	// hands over to another member (-disk-timeout). 0 means four times Timeout, and at least 10 s.
	DiskTimeout time.Duration
}

const witnessMark = "/witness"

// shortestTimeout leaves ten ticks of more than a millisecond.
const shortestTimeout = 50 * time.Millisecond

// shortestDiskTimeout is longer than an fsync takes on nearly any disk that is not busy.
const shortestDiskTimeout = time.Second

// diskTimeouts is how many election timeouts a disk may do nothing: an election, which needs the
// disk too, must be over by then.
const diskTimeouts = 4

// diskTimeout returns DiskTimeout, or what it is unless given.
func (c *ClusterConfig) diskTimeout() time.Duration {
	if c.DiskTimeout != 0 {
		return c.DiskTimeout
	}
	return max(cluster.LeastDiskTimeout, diskTimeouts*c.Timeout)
}

// on reports whether this server is a member of a cluster.
func (c *ClusterConfig) on() bool { return c.Name != "" }

// list parses Members.
func (c *ClusterConfig) list() (all []election.Member, err error) {
	if c.Members == "" {
		return nil, nil
	}
	for text := range strings.SplitSeq(c.Members, ",") {
		addr, witness := strings.CutSuffix(strings.TrimSpace(text), witnessMark)
		switch mark := strings.IndexByte(addr, '/'); {
		case addr == "":
			return nil, fmt.Errorf("-members: there is a comma too many in %q", c.Members)
		case mark >= 0:
			return nil, fmt.Errorf("-members: %q stands behind %s, where only %s may follow", addr[mark:], addr[:mark], witnessMark)
		}
		if err := checkAddress(addr); err != nil {
			return nil, fmt.Errorf("-members: %w", err)
		}
		if slices.ContainsFunc(all, func(m election.Member) bool { return m.Name == addr }) {
			return nil, fmt.Errorf("-members: %s stands there twice", addr)
		}
		all = append(all, election.Member{Name: addr, Addr: addr, Witness: witness})
	}
	return all, nil
}

func checkAddress(addr string) error {
	host, port, err := net.SplitHostPort(addr)
	if err != nil || host == "" {
		return fmt.Errorf("%q is not HOST:PORT", addr)
	}
	if n, err := strconv.ParseUint(port, 10, 16); err != nil || n == 0 {
		return fmt.Errorf("%q has no port from 1 to 65535", addr)
	}
	return nil
}

// self returns this server's member among all, or a new one where it joins.
func (c *ClusterConfig) self(all []election.Member, port int) (election.Member, error) {
	if c.Advertise != "" {
		if err := checkAddress(c.Advertise); err != nil {
			return election.Member{}, fmt.Errorf("-advertise: %w", err)
		}
		for _, m := range all {
			if m.Addr == c.Advertise {
				return m, nil
			}
		}
		if len(all) > 0 {
			return election.Member{}, fmt.Errorf("-advertise: %s is not among the -members", c.Advertise)
		}
		return election.Member{Name: c.Advertise, Addr: c.Advertise}, nil
	}
	if len(all) == 0 {
		return election.Member{}, errors.New("-join needs -advertise HOST:PORT, the address by which the members reach this server")
	}
	var mine []election.Member
	for _, m := range all {
		host, p, _ := net.SplitHostPort(m.Addr)
		if p == strconv.Itoa(port) && isLocal(host) {
			mine = append(mine, m)
		}
	}
	if len(mine) != 1 {
		return election.Member{}, fmt.Errorf("which of the -members is this server? %d of them have an address of this machine and the port %d: say it with -advertise HOST:PORT",
			len(mine), port)
	}
	return mine[0], nil
}

// isLocal reports whether a host is this machine.
func isLocal(host string) bool {
	ips, err := net.LookupIP(host)
	if err != nil {
		return false
	}
	own, err := net.InterfaceAddrs()
	if err != nil {
		return false
	}
	return slices.ContainsFunc(ips, func(ip net.IP) bool {
		return ip.IsLoopback() || slices.ContainsFunc(own, func(a net.Addr) bool {
			n, ok := a.(*net.IPNet)
			return ok && n.IP.Equal(ip)
		})
	})
}

// withData returns how many members are no witnesses.
func withData(all []election.Member) (n int) {
	for _, m := range all {
		if !m.Witness {
			n++
		}
	}
	return n
}
