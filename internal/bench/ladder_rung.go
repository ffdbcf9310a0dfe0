//go:build linux

package main

import (
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"gotycoon/internal/histogram"
)

// rung is one size of the ladder.
type rung struct {
	bench   *bench
	options *ladderOptions
	rows    *ladderWriter
	size    int
	server  *process
}

// Updates are numbered, so that a value tells which one it is from: the fill, the update phase, and
// from killSeq on the bulks before the kill.
const (
	fillSeq = iota
	updateSeq
	killSeq
)

// climb goes through all phases and removes the files.
func (r *rung) climb() error {
	args := []string{"-port", "$PORT", "-le", "-ulog", "$DIR/ulog", "-sid", "1"}
	args = append(append(args, strings.Fields(r.options.more)...), "$DIR/ladder."+r.options.db)
	p, err := start(r.bench.server, args...)
	if err != nil {
		return err
	}
	defer p.stop() // a measurement's end
	r.server = p
	for _, step := range []func() error{r.fill, r.trimLog, r.update, r.trimLog, r.get, r.stopAndStart, r.kill} {
		if err := step(); err != nil {
			return err
		}
	}
	return nil
}

func (r *rung) fill() error {
	return r.phase("fill", r.size, func(done *atomic.Int64) (*histogram.Histogram, error) {
		return bulkLoad(r.server.addr(), r.size, fillSeq, done, eachOnce)
	})
}

func (r *rung) update() error {
	return r.phase("update", r.options.updates, func(done *atomic.Int64) (*histogram.Histogram, error) {
		return bulkLoad(r.server.addr(), r.options.updates, updateSeq, done, anyOf(r.size))
	})
}

func (r *rung) get() error {
	return r.phase("get", r.options.gets, func(done *atomic.Int64) (*histogram.Histogram, error) {
		v := &volley{addr: r.server.addr(), protocol: httpGet(ladderKeys(r.size)), conns: 64, count: r.options.gets}
		result, err := v.run()
		if err != nil {
			return nil, err
		}
		done.Add(int64(result.count))
		return &result.waits, nil
	})
}

// phase runs a load and prints its row.
func (r *rung) phase(name string, operations int, load func(done *atomic.Int64) (*histogram.Histogram, error)) error {
	cpu, err := r.server.cpu()
	if err != nil {
		return err
	}
	written, err := r.server.written()
	if err != nil {
		return err
	}
	read, err := r.server.read()
	if err != nil {
		return err
	}
	stalls, err := watchStalls()
	if err != nil {
		return err
	}
	var done atomic.Int64
	watch := r.watch(name, operations, &done)
	begin := time.Now()
	waits, err := load(&done)
	wall := time.Since(begin)
	peak := watch()
	stall, known := stalls.end()
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	debt, err := r.settle()
	if err != nil {
		return err
	}
	cpuAfter, err := r.server.cpu()
	if err != nil {
		return err
	}
	writtenAfter, err := r.server.written()
	if err != nil {
		return err
	}
	readAfter, err := r.server.read()
	if err != nil {
		return err
	}
	n := float64(operations)
	values := map[string]float64{
		"operations": n,
		"seconds":    wall.Seconds(),
		"rate":       n / wall.Seconds(),
		"cpu":        (cpuAfter - cpu).Seconds() * 1e6 / n,
		"written":    float64(writtenAfter-written) / n,
		"read":       float64(readAfter-read) / n,
		"debt":       debt.Seconds(),
		"rss":        mib(peak.resident),
		"own":        mib(peak.own),
	}
	for column, q := range map[string]float64{"p50": 0.5, "p99": 0.99, "p999": 0.999, "longest": 1} {
		values[column] = waits.Quantile(q).Seconds() * 1e3
	}
	if known {
		values["stall"] = stall.Seconds() * 1e3
	}
	if err := r.addDisk(values); err != nil {
		return err
	}
	return r.rows.add(ladderRow{size: r.size, phase: name, values: values})
}

// addDisk adds what the files take: the log apart from the database, whose directory has nothing
// else.
func (r *rung) addDisk(values map[string]float64) error {
	all, err := diskUsed(r.server.dir)
	if err != nil {
		return err
	}
	log, err := diskUsed(filepath.Join(r.server.dir, "ulog"))
	if err != nil {
		return err
	}
	values["file"], values["log"] = mib(all-log), mib(log)
	values["ratio"] = float64(all-log) / (float64(r.size) * recordSize)
	return nil
}

func mib(n int64) float64 { return float64(n) / (1 << 20) }

// peak is the most memory that a server had in a phase.
type peak struct{ resident, own int64 }

// watch looks at the memory of the server ten times a second, and tells every ten seconds how far a
// phase is, until the function that it returns is called.
func (r *rung) watch(name string, operations int, done *atomic.Int64) (end func() peak) {
	stop, result := make(chan struct{}), make(chan peak)
	go func() {
		var most peak
		look := time.NewTicker(100 * time.Millisecond)
		defer look.Stop()
		tell := time.NewTicker(10 * time.Second)
		defer tell.Stop()
		for {
			if resident, own, err := r.server.memory(); err == nil { // else it has ended, which the load notices
				most.resident, most.own = max(most.resident, resident), max(most.own, own)
			}
			select {
			case <-stop:
				result <- most
				return
			case <-tell.C:
				fmt.Fprintf(os.Stderr, "ladder: %s records: %s %d %%\n", sizeName(r.size), name, done.Load()*100/int64(operations))
			case <-look.C:
			}
		}
	}()
	return func() peak {
		close(stop)
		return <-result
	}
}

// settle waits until the server has written nothing for two seconds, two minutes at most, and
// returns how long it went on writing.
func (r *rung) settle() (time.Duration, error) {
	const quiet, patience = 2 * time.Second, 2 * time.Minute
	begin := time.Now()
	changed, last := begin, int64(-1)
	for tick := time.Tick(50 * time.Millisecond); ; <-tick {
		n, err := r.server.written()
		if err != nil {
			return 0, err
		}
		switch {
		case last < 0:
			last = n
		case n != last:
			changed, last = time.Now(), n
		}
		if time.Since(changed) >= quiet {
			return changed.Sub(begin), nil
		}
		if time.Since(begin) >= patience {
			fmt.Fprintf(os.Stderr, "ladder: %s records: the server still writes after %v, which is not counted any more\n", sizeName(r.size), patience)
			return patience, nil
		}
	}
}

// trimLog removes the log's old files, and waits until the server is quiet.
func (r *rung) trimLog() error {
	response, err := http.Post("http://"+r.server.addr()+"/rpc/ulog_remove", "text/tab-separated-values", nil)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if _, err := io.Copy(io.Discard, response.Body); err != nil || response.StatusCode != http.StatusOK {
		return fmt.Errorf("ulog_remove: status %d: %w", response.StatusCode, err)
	}
	_, err = r.settle()
	return err
}

// stopAndStart measures a clean stop, and the start after it.
func (r *rung) stopAndStart() error {
	stopped, err := r.server.end(syscall.SIGTERM)
	if err != nil {
		return err
	}
	values := map[string]float64{"seconds": stopped.Seconds()}
	if err := r.addDisk(values); err != nil {
		return err
	}
	if err := r.rows.add(ladderRow{size: r.size, phase: "stop", values: values}); err != nil {
		return err
	}
	started, err := r.server.again()
	if err != nil {
		return err
	}
	return r.rows.add(ladderRow{size: r.size, phase: "start", values: map[string]float64{"seconds": started.Seconds()}})
}
