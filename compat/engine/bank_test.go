package engine

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"strconv"
	"sync/atomic"
	"time"

	"gotycoon/compat/history"
)

const (
	accounts = 8
	money    = 8000 // in all accounts
)

const bankScript = `
kt = __kyototycoon__
db = kt.db
function move(inmap, outmap)
  local amount = tonumber(inmap.amount)
  local done = db:transaction(function()
    local from, to = db:get(inmap.from), db:get(inmap.to)
    db:set(inmap.from, string.format("%d", from - amount))
    db:set(inmap.to, string.format("%d", to + amount))
    return inmap.keep == "yes"
  end)
  return kt.RVSUCCESS
end
`

// bank is accounts between which money moves: by transactions of scripts, some of which are undone,
// and by atomic bulks that set all accounts. Whatever is lost or comes late, the sum is the same.
type bank struct {
	stage               *stage
	moves, bulks, looks atomic.Int64
	wrong               atomic.Pointer[string]
}

// share fills all accounts.
func (b *bank) share(w *history.HTTP, rnd *rand.Rand) bool {
	fields := []string{"atomic", ""}
	left := money
	for i := range accounts {
		n := left
		if i < accounts-1 {
			n = rnd.IntN(left/2 + 1)
		}
		left -= n
		fields = append(fields, fmt.Sprintf("_bank-%d", i), strconv.Itoa(n))
	}
	status, out, err := w.Procedure("set_bulk", askLimit, fields...)
	return err == nil && status == http.StatusOK && out["num"] == strconv.Itoa(accounts)
}

func (b *bank) move(w *history.HTTP, rnd *rand.Rand) bool {
	from := rnd.IntN(accounts)
	to := (from + 1 + rnd.IntN(accounts-1)) % accounts
	status, _, err := w.Procedure("play_script", waitLimit, "name", "move", "_from", fmt.Sprintf("bank-%d", from), "_to", fmt.Sprintf("bank-%d", to),
		"_amount", strconv.Itoa(rnd.IntN(100)), "_keep", []string{"yes", "yes", "yes", "no"}[rnd.IntN(4)])
	return err == nil && status == http.StatusOK
}

// look asks for all accounts at once.
func (b *bank) look(w *history.HTTP) bool {
	fields := []string{"atomic", ""}
	for i := range accounts {
		fields = append(fields, fmt.Sprintf("_bank-%d", i), "")
	}
	status, out, err := w.Procedure("get_bulk", askLimit, fields...)
	if err != nil || status != http.StatusOK {
		return false
	}
	sum := 0
	for i := range accounts {
		n, err := strconv.Atoi(out[fmt.Sprintf("_bank-%d", i)])
		if err != nil {
			n = 1 << 40
		}
		sum += n
	}
	if sum != money {
		text := fmt.Sprintf("the accounts have %d and not %d: %v", sum, money, out)
		b.wrong.CompareAndSwap(nil, &text)
	}
	return true
}

// run has a client do the same thing at any server until the context ends.
func (b *bank) run(ctx context.Context, rnd *rand.Rand, count *atomic.Int64, pause time.Duration, turn func(w *history.HTTP) bool) {
	var w *history.HTTP
	for ctx.Err() == nil {
		if w == nil {
			w, _ = history.DialHTTP(b.stage.servers[rnd.IntN(len(b.stage.servers))].ports.Main, askLimit)
		}
		rest := pause
		switch {
		case w == nil:
			rest = 20 * time.Millisecond
		case turn(w):
			count.Add(1)
		default:
			w.Close()
			w = nil
		}
		if w != nil && rnd.IntN(50) == 0 {
			w.Close()
			w = nil
		}
		wait(ctx, rest)
	}
	if w != nil {
		w.Close()
	}
}

// wait returns after a time, or when the context ends.
func wait(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}
