package remote

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"gotycoon/client"
	"gotycoon/tools/show"
)

// minInterval is the shortest interval, so that a typing error does not put load on the server.
const minInterval = 100 * time.Millisecond

const percent = 100

// sample is the report of a server at a moment.
type sample struct {
	at   time.Time
	rows client.Rows
}

func (c *call) sample(ctx context.Context) (*sample, error) {
	rows, err := c.client.Report(ctx)
	if err != nil {
		return nil, c.failed("DB::report", err)
	}
	return &sample{time.Now(), rows}, nil
}

// number returns a row that is a number, 0 if there is none.
func (s *sample) number(name string) float64 {
	n, err := strconv.ParseFloat(string(s.rows[name]), 64)
	if err != nil {
		return 0
	}
	return n
}

// rates are numbers of requests per second.
type rates struct {
	get, getMiss, set, setMiss, remove, removeMiss, script, misc float64

	cpu float64 // seconds of processor time per second
}

// ratesBetween compares two samples. If the server was restarted in between, its counters have
// decreased: then a rate is 0.
func ratesBetween(before, now *sample) rates {
	seconds := now.at.Sub(before.at).Seconds()
	per := func(names ...string) float64 {
		sum := 0.0
		for _, name := range names {
			sum += now.number(name) - before.number(name)
		}
		return max(0, sum) / max(seconds, minInterval.Seconds())
	}
	return rates{
		get: per("cnt_get"), getMiss: per("cnt_get_misses"), set: per("cnt_set"), setMiss: per("cnt_set_misses"),
		remove: per("cnt_remove"), removeMiss: per("cnt_remove_misses"), script: per("cnt_script"), misc: per("cnt_misc"),
		cpu: per("sys_ru_utime", "sys_ru_stime"),
	}
}

func (r *rates) misses() float64 { return r.getMiss + r.setMiss + r.removeMiss }

func (r *rates) other() float64 { return r.script + r.misc }

// object makes the JSON object of a sample.
func (r *rates) object(now *sample) show.Object {
	o := status(now.rows)
	o["time"] = now.at.Unix()
	o["cpu"] = r.cpu
	for name, rate := range map[string]float64{
		"get": r.get, "get_misses": r.getMiss, "set": r.set, "set_misses": r.setMiss, "remove": r.remove,
		"remove_misses": r.removeMiss, "script": r.script, "misc": r.misc,
	} {
		o[name+"_per_second"] = rate
	}
	return o
}

// database is a row db_N of a report.
type database struct {
	path        string
	count, size float64
}

// databases returns the server's databases, in the order of their numbers.
func (s *sample) databases() []database {
	var found []database
	for n := 0; ; n++ {
		row, ok := s.rows[fmt.Sprint("db_", n)]
		if !ok {
			return found
		}
		var d database
		text, path, _ := strings.Cut(string(row), " path=")
		d.path = path
		_, _ = fmt.Sscanf(text, "count=%g size=%g", &d.count, &d.size) // unreadable numbers are 0
		found = append(found, d)
	}
}

// others returns the names of the rows about replication, sorted.
func (s *sample) others() []string {
	var found []string
	for _, name := range slices.Sorted(maps.Keys(s.rows)) {
		if strings.HasPrefix(name, "repl_") {
			found = append(found, name)
		}
	}
	return found
}

// size formats a number of bytes for people.
func size(bytes float64) string {
	const unit = 1024
	for _, suffix := range []string{"B", "K", "M", "G"} {
		if bytes < unit {
			return strconv.FormatFloat(bytes, 'f', map[bool]int{true: 0, false: 1}[suffix == "B"], 64) + suffix
		}
		bytes /= unit
	}
	return strconv.FormatFloat(bytes, 'f', 1, 64) + "T"
}
