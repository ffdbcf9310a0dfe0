package server

import (
	"cmp"
	"fmt"
	"net"
	"strconv"
	"strings"
	"time"

	"gotycoon/replication"
)

// alarms returns what is wrong with the replication from a master. A lag counts if it is above
// limit; with the limit 0 no lag counts.
func (f *following) alarms(now time.Time, limit time.Duration) []alarm {
	if f.broken != nil {
		return []alarm{{name: alarmStalled, text: fmt.Sprintf("this server does not replicate: %v", f.broken)}}
	}
	lag, follows := f.lag(now)
	if !follows {
		return nil
	}
	all := append(f.incomplete(), f.stalled(now)...)
	if limit > 0 && lag > limit {
		all = append(all, alarm{name: alarmLag, text: fmt.Sprintf("this server is behind its master: %.1f s, more than the %.1f s of -ready-lag",
			lag.Seconds(), limit.Seconds())})
	}
	return all
}

// incomplete returns why this server lacks records that its master has, other than the newest.
func (f *following) incomplete() []alarm {
	if f.follower == nil {
		return nil
	}
	switch st := f.follower.Status(); st.State {
	case replication.Copying:
		return []alarm{{name: alarmCopying, text: "copying from its master: " + copyProgress(st.Copy)}}
	case replication.Gap:
		return []alarm{{name: alarmGap, text: "lacks updates of its master: " + st.Trouble}}
	case replication.Parted:
		return []alarm{{name: alarmParted, text: "has updates that its master has lost: " + st.Trouble}}
	}
	return nil
}

// stalled returns why nothing comes from the master.
func (f *following) stalled(now time.Time) []alarm {
	m, st := f.follower.Master(), f.follower.Status()
	addr := net.JoinHostPort(m.Host, strconv.Itoa(m.Port))
	switch {
	case st.State == replication.Stalled:
		silent := fmt.Sprintf("nothing has come for %.0f seconds", now.Sub(st.Contact).Seconds())
		return []alarm{{name: alarmStalled, text: fmt.Sprintf("the replication from %s has stalled: %s", addr, cmp.Or(st.Trouble, silent))}}
	case st.State == replication.Connecting && st.Trouble != "":
		text := fmt.Sprintf("nothing comes from the master %s: %s", addr, st.Trouble)
		if strings.HasPrefix(st.Trouble, "dial ") {
			text += ". Is it running, and is this its address (-mhost, -mport, tunerepl)?"
		}
		return []alarm{{name: alarmStalled, text: text}}
	}
	return nil
}
