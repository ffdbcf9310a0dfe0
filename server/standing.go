package server

import (
	"fmt"
	"strings"
	"sync"
	"time"
)

// Role is what a server is for clients that update records.
type Role string

// The roles. Elsewhere in the code a role without more is that of the services, see package leader.
const (
	RolePrimary Role = "primary" // takes updates of clients, and follows no master
	RoleReplica Role = "replica" // follows a master, whether clients may update it too or not
	RoleNone    Role = "none"    // neither, as a server between two roles
)

// Standing is the role of this server, and which server is the primary.
type Standing struct {
	Role Role

	// Primary is the address of the primary's data port, HOST:PORT; empty where it is not known,
	// as on a primary without a cluster, which does not know by what address clients reach it. On
	// a replica without a cluster it is the master, which may follow another one itself.
	Primary string

	Term  uint64    // of the election that has decided so; 0: nobody was elected
	Since time.Time // when this server noticed that
}

// text says the standing to an operator.
func (s Standing) text() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s since %s", s.Role, instant(s.Since))
	if s.Term > 0 {
		fmt.Fprintf(&b, ", term %d", s.Term)
	}
	if s.Primary != "" {
		fmt.Fprintf(&b, ", primary: %s", s.Primary)
	}
	return b.String()
}

// standingSource decides about the role. Without a cluster it is the replication, see
// replicationStanding; with one, the election.
type standingSource interface {
	// standing returns what holds at this moment, without Since. It waits for nothing.
	standing() Standing

	// watch has changed called after each change of what standing returns. The caller of changed
	// holds no lock that standing takes. watch is called once, before the server serves.
	watch(changed func())
}

// standing is the one place that knows the role of this server for data. Any goroutine may ask it.
type standing struct {
	source standingSource
	quiet  bool // reports leave the role out while the server has been a primary since its start

	mu   sync.Mutex // protects the fields below; standingSource.standing is called under it
	now  Standing
	next chan struct{} // closed at the next change
	told int           // changes of now
}

// lone reports whether this server has been nothing but a primary since its start.
func (s *standing) lone() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.now.Role == RolePrimary && s.told == 1
}

func openStanding(source standingSource) *standing {
	s := &standing{source: source, next: make(chan struct{})}
	source.watch(func() { s.look() })
	s.look()
	return s
}

// look returns the present standing, and a channel that is closed when the standing has changed.
//
// It asks the source again under the lock. So of two goroutines that see a change the later one has
// the newer standing, and no change is lost: the channel is closed, at the latest, when anybody
// looks next.
func (s *standing) look() (Standing, <-chan struct{}) {
	s.mu.Lock()
	defer s.mu.Unlock()
	is := s.source.standing()
	is.Since = s.now.Since
	if is != s.now {
		is.Since = time.Now()
		s.now = is
		s.told++
		close(s.next)
		s.next = make(chan struct{})
	}
	return s.now, s.next
}
