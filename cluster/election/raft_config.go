package election

import (
	"errors"
	"fmt"
	"hash/fnv"
	"log/slog"
	"slices"
	"time"

	"gotycoon/internal/vfs"
)

// RaftConfig is what OpenRaft needs.
type RaftConfig struct {
	// Cluster is the name of the cluster. Messages of other clusters are dropped.
	Cluster string

	// Name and Addr are this member's own.
	Name, Addr string

	// Members are those of a new cluster, this one included. All of them are started with the same
	// list, and begin with the same state. A server without the list waits until the leader has
	// added it. A directory with a state makes the list unimportant; a different one is logged.
	Members []Member

	Dir string // is made if it is missing; belongs to this member alone
	FS  vfs.FS // the system's, unless given

	Transport Transport
	Log       *slog.Logger // nothing is logged without one

	Tick          time.Duration // 100 ms, unless given; the same on all members
	ElectionTicks int           // 10, unless given; the same on all members
	Clock         Clock         // the system's, unless given
}

// The default timers: elections begin 1 to 2 s after the leader was heard last.
const (
	defaultTick          = 100 * time.Millisecond
	defaultElectionTicks = 10
	renewTicks           = 2 // ticks between two renewals of the lease
)

// filled returns the configuration with defaults.
func (c RaftConfig) filled() (RaftConfig, error) {
	if c.Tick == 0 {
		c.Tick = defaultTick
	}
	if c.ElectionTicks == 0 {
		c.ElectionTicks = defaultElectionTicks
	}
	if c.FS == nil {
		c.FS = vfs.OS{}
	}
	if c.Clock == nil {
		c.Clock = realClock{}
	}
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	c.Members = slices.Clone(c.Members)
	slices.SortFunc(c.Members, byName)
	return c, c.check()
}

func (c *RaftConfig) check() error {
	switch {
	case c.Name == "":
		return errors.New("election: the member needs a name")
	case c.Transport == nil:
		return errors.New("election: the member needs a transport")
	case c.ElectionTicks < 3*renewTicks:
		return fmt.Errorf("election: the election timeout of %d ticks is shorter than three"+
			" renewals of a lease; give at least %d ticks", c.ElectionTicks, 3*renewTicks)
	case len(c.Members) > 0:
		return checkBootstrap(c.Members, c.Name)
	}
	return nil
}

// checkBootstrap checks the sorted list of the members of a new cluster.
func checkBootstrap(members []Member, self string) error {
	data := 0
	for i, m := range members {
		if m.Name == "" || i > 0 && members[i-1].Name == m.Name {
			return fmt.Errorf("election: the name %q is empty or stands twice in the list of members",
				m.Name)
		}
		if !m.Witness {
			data++
		}
	}
	if data == 0 {
		return errors.New("election: a cluster needs a member that is no witness")
	}
	if !slices.ContainsFunc(members, func(m Member) bool { return m.Name == self }) {
		return fmt.Errorf("election: the list of members does not contain %q, this server", self)
	}
	return nil
}

// identify gives the members of a new cluster the numbers that all of them compute alike.
func identify(cluster string, members []Member) []Member {
	members = slices.Clone(members)
	for i := range members {
		members[i].ID = hash(cluster, members[i].Name)
		members[i].Joining = false
	}
	return members
}

// fingerprint tells clusters apart, and lists of members from which two parts of one cluster were
// started: with different lists each could find a majority of its own.
func fingerprint(cluster string, members []Member) uint64 {
	parts := []string{cluster}
	for _, m := range members {
		parts = append(parts, m.Name, fmt.Sprint(m.Witness))
	}
	return hash(parts...)
}

// hash never returns 0 or one of the two highest numbers, which raft uses for itself.
func hash(parts ...string) uint64 {
	h := fnv.New64a()
	for _, p := range parts {
		fmt.Fprintf(h, "%d:%s", len(p), p)
	}
	return max(1, h.Sum64()&^(1<<63))
}
