package cluster

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"gotycoon/client/wire/counter/frame"
	"gotycoon/compat/history"
)

// issued is a number that a client was given: a fencing token, a sequence number, or nothing but
// the success of acquiring a counter.
type issued struct {
	number      string
	began, over time.Duration
}

// issuer is a client of a service behind one address, which asks again and again.
type issuer struct {
	play *play
	id   int
	addr string
	once func(i *issuer, conn net.Conn, in *bufio.Reader) (number string, ok bool)
	got  []issued
}

func (i *issuer) run(ctx context.Context) {
	for ctx.Err() == nil {
		if conn, err := net.DialTimeout("tcp4", i.addr, history.DialLimit); err == nil {
			i.serve(ctx, conn)
			conn.Close()
		}
		wait(ctx, ms(10))
	}
}

func (i *issuer) serve(ctx context.Context, conn net.Conn) {
	in := bufio.NewReader(conn)
	for ctx.Err() == nil {
		_ = conn.SetDeadline(time.Now().Add(askLimit))
		began := time.Since(i.play.began)
		number, ok := i.once(i, conn, in)
		if !ok {
			return
		}
		i.got = append(i.got, issued{number, began, time.Since(i.play.began)})
		wait(ctx, ms(2))
	}
}

// lockOnce takes a lock with a fencing token and releases it.
func lockOnce(i *issuer, conn net.Conn, in *bufio.Reader) (token string, ok bool) {
	fmt.Fprintf(conn, "lock-fenced key-%d 1 0 2\n", i.id)
	line, err := in.ReadString('\n')
	words := strings.Fields(line)
	if err != nil || len(words) != 6 || words[0] != "GRANTED" {
		return "", false
	}
	_, err = fmt.Fprintf(conn, "release key-%d\n", i.id)
	if err == nil {
		_, err = in.ReadString('\n')
	}
	if err != nil { // the token counts, but who still has the lock would be given the same one again
		conn.Close()
	}
	return words[5], true
}

// fetchOnce fetches a sequence number.
func fetchOnce(_ *issuer, conn net.Conn, in *bufio.Reader) (number string, ok bool) {
	fmt.Fprint(conn, "GET /fetch?name=orders HTTP/1.1\r\nHost: x\r\n\r\n")
	resp, err := http.ReadResponse(in, nil)
	if err != nil {
		return "", false
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	return string(body), err == nil && resp.StatusCode == http.StatusOK
}

// countOnce acquires a counter and releases it.
func countOnce(i *issuer, conn net.Conn, in *bufio.Reader) (number string, ok bool) {
	a := frame.Args{Name: fmt.Append(nil, "counter-", i.id), Resources: 1, Maximum: 1}
	for _, op := range []frame.Opcode{frame.Acquire, frame.Release} {
		if _, err := conn.Write(frame.AppendRequest(nil, op, 1, a)); err != nil {
			return "", false
		}
		head := make([]byte, frame.HeaderLen)
		if _, err := io.ReadFull(in, head); err != nil {
			return "", false
		}
		h := frame.DecodeHeader(head)
		if _, err := in.Discard(int(h.Size)); err != nil || h.Status != frame.OK {
			return "", false
		}
	}
	return "", true
}

// services are what clients ask for behind one address.
var services = []struct {
	name string
	port func(m *member) int
	once func(i *issuer, conn net.Conn, in *bufio.Reader) (number string, ok bool)
}{
	{"lock", func(m *member) int { return m.ports.Lock }, lockOnce},
	{"sequence", func(m *member) int { return m.ports.Sequence }, fetchOnce},
	{"counter", func(m *member) int { return m.ports.Counter }, countOnce},
}

// startIssuers begins to ask the services, where the cluster has any.
func (p *play) startIssuers(ctx context.Context) {
	p.issuers = map[string][]*issuer{}
	for _, s := range services {
		b := p.cluster.fronts[s.name]
		if b == nil {
			continue
		}
		for id := range 3 {
			i := &issuer{play: p, id: id, addr: b.addr(), once: s.once}
			p.issuers[s.name] = append(p.issuers[s.name], i)
			p.wg.Go(func() { i.run(ctx) })
		}
	}
}

// ledgerOfNumbers are the numbers of all acts of a cluster: none is given out twice.
type ledgerOfNumbers map[string]bool

// checkIssued fails the test when a number was given out twice, or when a fencing token is not
// greater than one that had been given out before it was asked for.
func (p *play) checkIssued(t *testing.T) {
	t.Helper()
	for name, all := range p.issuers {
		var got []issued
		for _, i := range all {
			got = append(got, i.got...)
		}
		if len(got) == 0 {
			t.Errorf("nobody was given anything by the service %s", name)
		}
		p.cluster.issued[name] += len(got)
		if name == "counter" {
			continue
		}
		for _, g := range got {
			if key := name + " " + g.number; p.cluster.numbers[key] {
				t.Errorf("%s was given out twice", key)
			} else {
				p.cluster.numbers[key] = true
			}
		}
		if name == "lock" {
			checkGrowing(t, got)
		}
	}
}

func checkGrowing(t *testing.T, got []issued) {
	t.Helper()
	byBegin, byEnd := slices.Clone(got), slices.Clone(got)
	slices.SortFunc(byBegin, func(a, b issued) int { return int(a.began - b.began) })
	slices.SortFunc(byEnd, func(a, b issued) int { return int(a.over - b.over) })
	most := uint64(0) // of the tokens that were known when the next one was asked for
	known := 0
	for _, g := range byBegin {
		for ; known < len(byEnd) && byEnd[known].over < g.began; known++ {
			most = max(most, token(t, byEnd[known]))
		}
		if n := token(t, g); n <= most {
			t.Errorf("the fencing token %d was given out, after %v, when %d had been", n, g.over, most)
			return
		}
	}
}

func token(t *testing.T, g issued) uint64 {
	n, err := strconv.ParseUint(g.number, 10, 64)
	if err != nil {
		t.Errorf("a fencing token is no number: %q", g.number)
	}
	return n
}

func TestGrowingTokens(t *testing.T) {
	for _, wrong := range [][]issued{
		{{"1", 0, 1}, {"2", 2, 3}, {"2", 4, 5}},
		{{"5", 0, 1}, {"4", 2, 3}},
	} {
		shadow := &testing.T{}
		checkGrowing(shadow, wrong)
		if !shadow.Failed() {
			t.Errorf("%v: not found", wrong)
		}
	}
	checkGrowing(t, []issued{{"5", 0, 4}, {"4", 2, 3}, {"6", 5, 6}}) // asked for at one time
}
