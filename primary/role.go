package primary

import (
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"

	"gotycoon/db"
)

// Options of a Role.
type Options struct {
	DB     *db.DB       // the services' database: a file in the order of its keys as bytes
	SID    uint16       // this server's ID
	Logger *slog.Logger // nil means silent
}

// Service is what only the primary does.
type Service interface {
	// Lead is called before this server becomes the primary: the records are the service's from now on. An error keeps it from that.
	Lead() error
	// Yield is called when this server is the primary no more, and after an error of another service's Lead. It returns when the service
	// changes nothing any more.
	Yield()
}

// Role tells whether this server is the primary. Its methods may be called by many goroutines. A nil one is for servers that are
// always the primary.
type Role struct {
	opts Options

	mu       sync.Mutex // held while updates of others are stored, and over each change; before locks of services and of the database
	claims   claims
	ours     uint64 // this server's claim, as far as what it has made under it is here; less than that in claims: it has lost that
	current  bool   // since the start this server has had all that the master had, or has been the primary itself
	partial  bool   // a copy of the records has not come to its end
	services []Service

	informed atomic.Bool // whatever others have claimed is here

	term    atomic.Uint64           // claim of this server while it is the primary, else 0
	standby atomic.Pointer[Standby] // why it is not, while term is 0
}

var errPlace = errors.New("the services' database must be a file (.kct, .kch, .kcd or .kcf) in the order of its keys as bytes")

// Open reads the claims. The server is not the primary before Alone, CaughtUp or Claim.
func Open(o Options) (*Role, error) {
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if order, ordered := o.DB.Order(); !o.DB.OnDisk() || !ordered || order != db.Lexical {
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
	r.standby.Store(&Standby{reason: r.why()})
	return r, nil
}

// Term returns a number that grows each time this server becomes the primary, and a *Standby while it is not: what a service remembers of
// records is worth nothing in another term.
func (r *Role) Term() (uint64, error) {
	if r == nil {
		return 1, nil
	}
	if term := r.term.Load(); term != 0 {
		return term, nil
	}
	return 0, r.standby.Load()
}

// Attach has a service told of changes. If this server is the primary, it is told so at once.
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

// Alone says that there is no master, or one without a services' database. A server that knows of no claim makes one.
func (r *Role) Alone() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.claims) == 0 {
		return r.claim()
	}
	r.informed.Store(true)
	return r.decide()
}

// CaughtUp says that everything the master had is here.
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

// Heard returns nil when this server knows what others have claimed and written, as far as it needs to, and else a *Standby.
func (r *Role) Heard() error {
	if r == nil || r.informed.Load() {
		return nil
	}
	return &Standby{reason: "this server waits for what its master has; if there is none, 'ktremotemgr tunerepl' without a host says so"}
}

// Partial says whether the records are those of a copy that has not come to its end.
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

// Claim makes this server the primary, whatever others are. The claim is on the disk before anything is served. With force it does so
// although this server is known to lack something, or has not heard of the primary since its start; and one that is the primary makes a
// greater claim, which settles that it is, for others that know of an equal one.
func (r *Role) Claim(force bool) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case r.term.Load() != 0 && !force:
		return nil
	case r.term.Load() == 0 && r.why() == "": // but the services could not be taken over
		return r.decide()
	case force:
	case r.partial:
		return errPartial
	case len(r.claims) > 0 && !r.current:
		return errOld
	}
	return r.claim()
}

// claim is Claim under mu.
func (r *Role) claim() error {
	_, term, _ := r.claims.greatest()
	term++
	err := r.opts.DB.Set(nil, claimKey(r.opts.SID), strconv.AppendUint(nil, term, 10), db.Never)
	if err == nil {
		err = r.opts.DB.SyncLog()
	}
	if err != nil {
		err = fmt.Errorf("claim to be the primary: %w", err)
		if r.term.Load() == 0 {
			r.yield(err.Error() + "; when that is mended, " + remedy)
		}
		return err
	}
	r.claims[r.opts.SID], r.ours = term, term
	r.informed.Store(true)
	return r.decide()
}

// decide makes this server what the claims say. mu is held.
func (r *Role) decide() error {
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
	for i, s := range r.services {
		if err := s.Lead(); err != nil {
			for _, s := range slices.Backward(r.services[:i]) {
				s.Yield()
			}
			r.standby.Store(&Standby{reason: fmt.Sprintf("the services cannot be taken over: %v; when that is mended, %s", err, remedy)})
			return fmt.Errorf("become the primary: %w", err)
		}
	}
	r.term.Store(term)
	r.current = true
	r.opts.Logger.Info(fmt.Sprintf("this server is the primary of quotas and fencing tokens (term %d)", term))
	return nil
}

// yield ends the services if they were this server's. mu is held.
func (r *Role) yield(reason string) {
	if old := r.standby.Swap(&Standby{reason: reason}); old == nil || old.reason != reason {
		r.opts.Logger.Info("quotas and fencing tokens: " + reason)
	}
	if r.term.Swap(0) == 0 {
		return
	}
	for _, s := range slices.Backward(r.services) {
		s.Yield()
	}
}
