package lock

import (
	"errors"
	"fmt"
	"log/slog"
	"math"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"gotycoon/db"
	"gotycoon/db/dberr"
	"gotycoon/db/pages"
	"gotycoon/db/record"
	"gotycoon/services/leader"
)

// Fences is a source of fencing tokens.
type Fences interface {
	// Reserve returns the first of n consecutive numbers above 0, each greater than all numbers
	// that were reserved before. None of them is reserved again, even after a crash of the process
	// or the machine.
	Reserve(n uint64) (first uint64, err error)
}

// The bound of the tokens that a server has reserved is a record:
//
//	"lock" 00 "fence" 00 SID     BOUND    in decimal; all tokens of server SID are below it
//
// Only the server SID writes it. A record without 00 SID was written by an older version, on any
// server; it counts as this server's own.
//
// When other servers have reserved tokens too, this server starts above the highest token that any
// of them may have given out without telling it. So its first token is the greatest of three
// numbers:
//
//   - Its own bound.
//   - leader.AheadTokens above the highest bound that it knows, if that bound is another server's.
//     The comment on AheadTokens explains this gap.
//   - The Unix time in seconds, times tokensPerSecond. No server gives out more tokens a second, so
//     this number covers a server of which this one knows only a bound older than the gap covers:
//     2^40 tokens are twelve days of 2^20 tokens a second.
const tokensPerSecond = 1 << 20

// databaseFences keeps the bound in a record of a database.
type databaseFences struct {
	db  *db.DB
	own string // key of this server's record
}

// DatabaseFences returns fencing tokens whose bound is a record of d, which must be a database
// file, under this server's ID in replication.
func DatabaseFences(d *db.DB, sid uint16) (Fences, error) {
	if d == nil || !d.Info().OnDisk {
		return nil, errors.New("fencing tokens need a database file to keep their bound in")
	}
	return databaseFences{d, leader.FencePrefix + "\x00" + strconv.Itoa(int(sid))}, nil
}

// Reserve raises the bound and returns when the new bound would survive a power cut.
func (f databaseFences) Reserve(n uint64) (uint64, error) {
	const attempts = 10
	for i := 1; ; i++ {
		bound, err := f.raise(n)
		switch {
		case err == nil:
			return bound, nil
		// After a conflict the next attempt reads the record again: leader.regain has raised it.
		case !errors.Is(err, dberr.ErrConflict) || i == attempts:
			return 0, fmt.Errorf("the bound of fencing tokens: %w", err)
		}
	}
}

func (f databaseFences) raise(n uint64) (uint64, error) {
	old, first, err := f.bound()
	if err != nil {
		return 0, err
	}
	if first+n < first {
		return 0, errors.New("64 bits are used up")
	}
	if err := f.db.CAS(nil, []byte(f.own), old, strconv.AppendUint(nil, first+n, 10), record.Never); err != nil {
		return 0, err
	}
	return first, f.db.SyncLog()
}

// bound returns the value of this server's record, nil if there is none, and the lowest number that
// nobody can have been given.
func (f databaseFences) bound() (old []byte, first uint64, err error) {
	page, err := pages.Of(f.db, nil, pages.Options{Prefix: []byte(leader.FencePrefix), Records: math.MaxUint16 + 2, Examine: math.MaxUint16 + 2, Value: 32})
	if err != nil {
		return nil, 0, err
	}
	own, others := uint64(1), uint64(0)
	for _, r := range page.Records {
		bound, err := strconv.ParseUint(string(r.Value), 10, 64)
		if err != nil || bound == 0 {
			return nil, 0, fmt.Errorf("the record %q holds %q, which is no number", r.Key, r.Value)
		}
		switch string(r.Key) {
		case f.own:
			old, own = r.Value, max(own, bound)
		case leader.FencePrefix:
			own = max(own, bound)
		default:
			others = max(others, bound)
		}
	}
	if others > own {
		own = max(others, others+leader.AheadTokens) // the sum may overflow
	}
	if others > 0 {
		own = max(own, uint64(time.Now().Unix())*tokensPerSecond)
	}
	return old, own, nil
}

const (
	tokenBlock = 1_000_000   // tokens that are reserved together
	tokenRetry = time.Second // after an error of Reserve
)

// tokens gives out growing numbers. They are reserved in blocks. When half of a block has been
// given out, the next block is reserved in the background, so that no lock waits for the disk.
//
// Its goroutine is run, which the server starts, ends and waits for.
type tokens struct {
	source  Fences
	primary *leader.Role // whether this server gives out tokens; nil: it does
	logger  *slog.Logger
	current atomic.Pointer[block] // nil until Lead, and after Yield
	low     chan struct{}         // asks run to reserve the next block

	reserving sync.Mutex // held while a block is reserved
}

// block is a range of reserved numbers.
type block struct {
	next      atomic.Uint64
	half, end uint64
	following atomic.Pointer[block]
}

// newTokens returns tokens that are empty until Lead. Without a source there are none.
func newTokens(source Fences, primary *leader.Role, logger *slog.Logger) *tokens {
	if source == nil {
		return nil
	}
	return &tokens{source: source, primary: primary, logger: logger, low: make(chan struct{}, 1)}
}

// Lead implements leader.Service: it reserves the first block.
func (t *tokens) Lead() error {
	t.reserving.Lock()
	defer t.reserving.Unlock()
	b, err := t.reserve()
	if err == nil {
		t.current.Store(b)
	}
	return err
}

// Yield implements leader.Service. The rest of the reserved tokens is not used.
func (t *tokens) Yield() {
	t.reserving.Lock()
	defer t.reserving.Unlock()
	t.current.Store(nil)
}

// reserve reserves a block. reserving is held.
func (t *tokens) reserve() (*block, error) {
	first, err := t.source.Reserve(tokenBlock)
	if err != nil {
		return nil, fmt.Errorf("reserve fencing tokens: %w", err)
	}
	b := &block{half: first + tokenBlock/2, end: first + tokenBlock}
	b.next.Store(first)
	return b, nil
}

// take returns the next token, 0 if there is none. A take that begins after another take has
// returned gets the greater token. Whether this server is the primary is asked last: a cluster ends
// that before the disk lets it call Yield.
func (t *tokens) take() uint64 {
	if t == nil {
		return 0
	}
	for {
		b := t.current.Load()
		if b == nil {
			return 0
		}
		if b.next.Load() >= b.half {
			t.ask(b)
		}
		n := b.next.Add(1) - 1
		if n < b.end {
			if _, err := t.primary.Term(); err != nil {
				return 0
			}
			return n
		}
		following := b.following.Load()
		if following == nil {
			return 0
		}
		t.current.CompareAndSwap(b, following)
	}
}

// ask asks run to reserve the next block, unless there is one.
func (t *tokens) ask(b *block) {
	if b.following.Load() != nil {
		return
	}
	select {
	case t.low <- struct{}{}:
	default:
	}
}

// run reserves blocks until quit.
func (t *tokens) run(quit <-chan struct{}) {
	for {
		select {
		case <-quit:
			return
		case <-t.low:
		}
		if err := t.extend(); err != nil {
			t.logger.Error("locks: " + err.Error())
			pause(quit, tokenRetry)
		}
	}
}

// extend reserves the block after the current one, unless there is one.
func (t *tokens) extend() error {
	t.reserving.Lock()
	defer t.reserving.Unlock()
	b := t.current.Load()
	if b == nil || b.following.Load() != nil {
		return nil
	}
	following, err := t.reserve()
	if err == nil {
		b.following.Store(following)
	}
	return err
}

func pause(quit <-chan struct{}, length time.Duration) {
	timer := time.NewTimer(length)
	defer timer.Stop()
	select {
	case <-quit:
	case <-timer.C:
	}
}
