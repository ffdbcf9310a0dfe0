package server

import (
	"fmt"
	"time"

	"gotycoon/db"
)

const (
	compactEvery = 2 * time.Second  // between two looks at the files
	compactAgain = 10 * time.Minute // after a compaction of a file that has failed
	compactLeast = 64 << 20         // bytes of a file that is worth the work
)

// compactions has files compacted without being asked: those that the latest process was compacting
// when it ended, and with -compact-ratio those that have grown far beyond their records. It begins
// no compaction while another one is under way, also of another database: each takes a share of the
// disk and the processors.
type compactions struct {
	all   []*db.DB
	ratio func() float64 // -compact-ratio; 0: none
	least int64          // bytes of a file that is compacted by ratio
	log   logger

	left map[*db.DB]bool      // that were not looked at since the start
	not  map[*db.DB]time.Time // until when a file is left alone
	fail map[*db.DB]int64     // compactions that had failed at the latest look
}

func newCompactions(all []*db.DB, ratio func() float64, log logger) *compactions {
	c := &compactions{
		all: all, ratio: ratio, least: compactLeast, log: log,
		left: map[*db.DB]bool{}, not: map[*db.DB]time.Time{}, fail: map[*db.DB]int64{},
	}
	for _, d := range all {
		c.left[d] = true
	}
	return c
}

// look begins at most one compaction.
func (c *compactions) look(now time.Time) {
	for _, d := range c.all {
		st := d.Compaction()
		if st.Running {
			return
		}
		if st.Failed != c.fail[d] {
			c.fail[d], c.not[d] = st.Failed, now.Add(compactAgain)
		}
	}
	for _, d := range c.all {
		if begun, err := c.begin(d, now); begun || err != nil {
			if err != nil {
				c.log.error("compaction: %v", err)
				c.not[d] = now.Add(compactAgain)
			}
			return
		}
	}
}

func (c *compactions) begin(d *db.DB, now time.Time) (begun bool, err error) {
	if c.left[d] {
		delete(c.left, d)
		begun, err := d.ResumeCompaction()
		if begun {
			c.log.info("compacting again what the latest process did not end: path=%s", d.Info().Path)
		}
		return begun, err
	}
	ratio := c.ratio()
	if ratio <= 0 || now.Before(c.not[d]) || !d.Bloated(ratio, c.least) {
		return false, nil
	}
	c.log.info("compacting by -compact-ratio: path=%s", d.Info().Path)
	return true, d.Compact()
}

// checkRatio refuses a ratio that a compacted file would have, too.
func checkRatio(ratio float64) error {
	if ratio != 0 && ratio < leastRatio {
		return fmt.Errorf("-compact-ratio must be 0 or at least %.1f: a compacted file has about 1", leastRatio)
	}
	return nil
}

const leastRatio = 1.2
