package server

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"gotycoon/ulog"
)

// asidePrefix begins the names of the directories of what was put aside.
const asidePrefix = "aside-term-"

// SetAside implements cluster.Data. The log that it writes has the stamps that the updates had
// here.
func (d *clusterData) SetAside(term, after uint64, lost func(log, stamp uint64) bool) (n int, dir string, err error) {
	own := ulog.LogKey(d.catalog.Log().ID())
	r, err := d.catalog.Log().NewReader(ulog.Stamp(after))
	if err != nil {
		return 0, "", err
	}
	defer r.Close()
	w := asideLog{dir: filepath.Join(d.dir, fmt.Sprintf("%s%d-%s", asidePrefix, term, time.Now().Format("20060102-150405.000000")))}
	for {
		e, err := r.Next()
		if errors.Is(err, io.EOF) {
			return w.close()
		}
		if skip := skipping(r, err); skip != nil {
			d.log.error("cluster: what only this server has cannot be put aside as a whole: %v", err)
			skip()
			w.n++ // nobody knows how many
			continue
		}
		if err != nil {
			return 0, "", errors.Join(err, w.abandon())
		}
		log, stamp := e.Origin.Log, e.Origin.Stamp
		if log == 0 {
			log, stamp = own, e.Stamp
		}
		if log == ulog.UnknownLog || !lost(log, uint64(stamp)) {
			continue
		}
		if err := w.add(e); err != nil {
			return 0, "", errors.Join(err, w.abandon())
		}
	}
}

// asides returns the directories of the logs that were put aside in a cluster's directory, and that
// nobody has removed since.
func asides(dir string) (all []string) {
	found, err := os.ReadDir(dir)
	if err != nil {
		return nil // nothing was put aside before there was a directory
	}
	for _, f := range found {
		if f.IsDir() && strings.HasPrefix(f.Name(), asidePrefix) {
			all = append(all, filepath.Join(dir, f.Name()))
		}
	}
	return all
}

// skipping returns what has a reader go on behind updates that are gone or damaged, nil for other
// errors.
func skipping(r *ulog.Reader, err error) func() {
	if _, gap := errors.AsType[*ulog.GapError](err); gap {
		return r.SkipGap
	}
	if _, damaged := errors.AsType[*ulog.DamageError](err); damaged {
		return r.SkipDamage
	}
	return nil
}

// asideLog is an update log for people. It is made with its first update.
type asideLog struct {
	dir string
	log *ulog.Log
	at  ulog.Stamp // of the update that is added
	n   int
}

func (w *asideLog) add(e ulog.Entry) (err error) {
	if w.log == nil {
		if w.log, err = ulog.Open(w.dir, ulog.Options{Limit: -1, Now: func() time.Time { return w.at.Time() }}); err != nil {
			return err
		}
	}
	u, err := ulog.ParseMessage(e.Message)
	if err != nil {
		return err
	}
	w.at = e.Stamp
	at, err := w.log.Append([]ulog.Update{u})
	if err == nil && w.n%1000 == 999 { // the log keeps in memory what it has not written
		err = w.log.Wait(at)
	}
	w.n++
	return err
}

// close makes the log durable.
func (w *asideLog) close() (n int, dir string, err error) {
	if w.log == nil {
		return w.n, "", nil
	}
	return w.n, w.dir, w.log.Close()
}

// abandon removes what has been written.
func (w *asideLog) abandon() error {
	if w.log == nil {
		return nil
	}
	return errors.Join(w.log.Close(), os.RemoveAll(w.dir))
}
