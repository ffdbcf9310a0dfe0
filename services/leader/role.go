package leader

import (
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"

	"gotycoon/db"
	"gotycoon/db/expr"
	"gotycoon/db/record"
	"gotycoon/services"
)

// Options of a Role.
type Options struct {
	DB     *db.DB       // the services' database: a file in the order of its keys as bytes
	SID    uint16       // this server's ID
	Logger *slog.Logger // nil means silent

	// Cluster: a cluster decides who the primary is, see cluster.go. Alone, CaughtUp and Claim
	// change nothing.
	Cluster bool
}

// Service is a service that only the primary provides.
type Service interface {
	// Lead is called just before this server becomes the primary. From then on only this service
	// writes its records. If Lead fails, this server does not become the primary.
	Lead() error
	// Yield is called when this server stops being the primary, and when the Lead of a later
	// service failed. When Yield returns, the service changes its records no more.
	Yield()
}

// Role decides whether this server is the primary. Its methods may be called by many goroutines. A
// nil *Role belongs to a server that is always the primary.
type Role struct {
	opts Options

	// mu is held while updates of others are stored and while the role changes. It is taken before
	// locks of services and of the database.
	mu     sync.Mutex
	claims claims
	// ours is the term of this server's latest claim whose records are here. If peers know a
	// greater claim of this server, claims[SID] has the greater one: the records made under that
	// claim are lost here, so it does not make this server the primary.
	ours uint64
	// current: since its start this server has received everything that its master had, or has been
	// the primary.
	current  bool
	partial  bool // a copy of the records has begun and not come to its end
	services []Service
	ready    atomic.Uint64 // in a cluster: the term for which the services have taken over; 0: none

	// informed: this server knows the claims of the others, as far as they can tell it.
	informed atomic.Bool

	term    atomic.Uint64                    // this server's claim while it is the primary, else 0
	standby atomic.Pointer[services.Standby] // why this server is not the primary, while term is 0
}

var errPlace = errors.New("the services' database must be a file (.kct, .kch, .kcd or .kcf) in the order of its keys as bytes")

// Open reads the claims. The server is not the primary before Alone, CaughtUp or Claim.
func Open(o Options) (*Role, error) {
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if info := o.DB.Info(); !info.OnDisk || !info.Ordered || info.Order != expr.Lexical {
		return nil, errPlace
	}
	known, err := readClaims(o.DB)
	if err != nil {
		return nil, err
	}
	told, err := readTold(o.DB, o.SID)
	if err != nil {
		return nil, err
	}
	r := &Role{opts: o, claims: known, ours: known[o.SID]}
	if told > r.ours {
		r.claims[o.SID] = told
	}
	reason := r.why()
	if o.Cluster {
		reason = "the cluster has not told yet which server is the primary"
	}
	r.standby.Store(&services.Standby{Reason: reason})
	return r, nil
}

// Term returns a number that grows each time this server becomes the primary, and a
// *services.Standby error while it is not the primary. A service that caches records keeps the term
// with them: in another term another server may have changed the records.
func (r *Role) Term() (uint64, error) {
	if r == nil {
		return 1, nil
	}
	if term := r.term.Load(); term != 0 {
		return term, nil
	}
	return 0, r.standby.Load()
}

// Attach registers a service. If this server is the primary already, Attach calls Lead at once.
func (r *Role) Attach(s Service) error {
	if r == nil {
		return s.Lead()
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.term.Load() != 0 {
		if err := s.Lead(); err != nil {
			return err
		}
	}
	r.services = append(r.services, s)
	return nil
}

// Alone says that there is no master, or that the master has no services' database. A server that
// knows of no claim then makes one.
func (r *Role) Alone() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.claims) == 0 && !r.opts.Cluster {
		return r.claim()
	}
	r.informed.Store(true)
	return r.decide()
}

// CaughtUp says that this server has received everything that the master had.
func (r *Role) CaughtUp() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.informed.Load() && r.current {
		return nil
	}
	r.informed.Store(true)
	r.current = true
	return r.decide()
}

// Heard returns nil when this server knows the claims and bounds of the others, as far as they can
// tell it, and else a *services.Standby.
func (r *Role) Heard() error {
	if r == nil || r.informed.Load() {
		return nil
	}
	return &services.Standby{Reason: "this server waits for what its master has; if there is none, 'ktremotemgr tunerepl' without a host says so"}
}

// Partial tells the role whether a copy of the records has begun and not come to its end.
func (r *Role) Partial(on bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.partial = on
}

var (
	errPartial = errors.New("this server has only a part of the primary's quotas, since it has not been able to fetch them all: let it follow a server " +
		"that has them; 'ktremotemgr tunerepl -primary -force' makes it the primary as it is")
	errOld = errors.New("what this server has of quotas may be old: since its start it has not caught up with its master; " +
		"'ktremotemgr tunerepl -primary -force' makes it the primary as it is")
)

// Claim makes this server the primary, whatever other servers are. The claim is on the disk before
// this server serves anything. Without force, Claim refuses while this server is known to lack
// records, or has not caught up with its master since its start.
//
// With force, a server that already is the primary claims again with a higher term. That resolves a
// tie: peers that knew two claims of the same term now know a winner.
func (r *Role) Claim(force bool) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case r.opts.Cluster:
		return errCluster
	case r.term.Load() != 0 && !force:
		return nil
	case r.term.Load() == 0 && r.why() == "":
		// This server has the greatest claim already, but a service failed to take over: try again.
		return r.decide()
	case force:
	case r.partial:
		return errPartial
	case len(r.claims) > 0 && !r.current:
		return errOld
	}
	return r.claim()
}

// claim writes a claim above all that this server knows. mu is held.
func (r *Role) claim() error {
	if err := r.writeClaim(); err != nil {
		if r.term.Load() == 0 {
			r.yield(err.Error() + "; when that is mended, " + remedy)
		}
		return err
	}
	return r.decide()
}

// writeClaim writes a claim above all that this server knows, and makes it durable. mu is held.
func (r *Role) writeClaim() error {
	_, term, _ := r.claims.greatest()
	term++
	// No client is told of the claim, so no follower need have it: calls that come later need
	// followers, and a follower that has such a call has the claim.
	local := db.Pending{Local: true}
	err := r.opts.DB.Set(&local, claimKey(r.opts.SID), strconv.AppendUint(nil, term, 10), record.Never)
	if err == nil {
		err = r.opts.DB.SyncLog()
	}
	if err != nil {
		return fmt.Errorf("claim to be the primary: %w", err)
	}
	r.claims[r.opts.SID], r.ours = term, term
	r.informed.Store(true)
	return nil
}

// decide makes this server the primary, or a standby, as the claims say. mu is held.
func (r *Role) decide() error {
	if r.opts.Cluster {
		return nil
	}
	reason := r.why()
	if reason != "" {
		r.yield(reason)
		return nil
	}
	term := r.claims[r.opts.SID]
	if r.term.Load() != 0 {
		r.term.Store(term)
		return nil
	}
	if err := r.lead(); err != nil {
		return err
	}
	r.term.Store(term)
	r.current = true
	r.tellPrimary(term)
	return nil
}

// lead has all services take over, or none. mu is held.
func (r *Role) lead() error {
	for i, s := range r.services {
		if err := s.Lead(); err != nil {
			for _, s := range slices.Backward(r.services[:i]) {
				s.Yield()
			}
			reason := fmt.Sprintf("the services cannot be taken over: %v", err)
			if !r.opts.Cluster {
				reason += "; when that is mended, " + remedy
			}
			r.standby.Store(&services.Standby{Reason: reason})
			return fmt.Errorf("become the primary: %w", err)
		}
	}
	return nil
}

func (r *Role) tellPrimary(term uint64) {
	r.opts.Logger.Info(fmt.Sprintf("this server is the primary of quotas and fencing tokens (term %d)", term))
}

// yield makes this server a standby, and ends its services if it was the primary. mu is held.
func (r *Role) yield(reason string) {
	if old := r.standby.Swap(&services.Standby{Reason: reason}); old == nil || old.Reason != reason {
		r.opts.Logger.Info("quotas and fencing tokens: " + reason)
	}
	if r.term.Swap(0) != 0 {
		r.end()
	}
}

// end ends the services' work as those of the primary. mu is held.
func (r *Role) end() {
	for _, s := range slices.Backward(r.services) {
		s.Yield()
	}
}
