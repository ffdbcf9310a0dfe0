package server

import (
	"bytes"
	"errors"
	"log/slog"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"gotycoon/internal/klog"
	"gotycoon/internal/rescue"
)

// watched are alarms of conditions that a test sets.
type watched struct {
	*alarms
	log bytes.Buffer
	now time.Time
	has map[string]string // texts by names
}

func watchAlarms() *watched {
	w := &watched{now: time.Unix(1_700_000_000, 0), has: map[string]string{}}
	w.alarms = newAlarms(newLogger(klog.Original, &w.log, slog.LevelInfo))
	w.sources = []func(time.Time) []alarm{func(time.Time) (all []alarm) {
		for name, text := range w.has {
			all = append(all, alarm{name: name, text: text})
		}
		return all
	}}
	return w
}

// names looks after some time, and returns the names of the alarms.
func (w *watched) names(passed time.Duration) string {
	w.now = w.now.Add(passed)
	var all []string
	for _, one := range w.look(w.now) {
		all = append(all, one.name)
	}
	return strings.Join(all, " ")
}

func TestAnAlarmKnowsSinceWhenItIsThere(t *testing.T) {
	w := watchAlarms()
	require.Empty(t, w.names(0))
	w.has[alarmDisk] = "no space: 3 MiB are free in /data"
	w.has[alarmTLS] = "the certificate expires"
	require.Equal(t, "disk certificate", w.names(time.Second), "the worst is first")
	began := w.now
	w.has[alarmDisk] = "no space: 2 MiB are free in /data"
	present := w.look(began.Add(time.Hour))
	require.Equal(t, "no space: 2 MiB are free in /data (since 2023-11-14T22:13:21Z)", present[0].String())
	require.Equal(t, began, present[0].since)
	delete(w.has, alarmDisk)
	require.Equal(t, "certificate", w.names(2*time.Hour))
	require.Equal(t, 2, strings.Count(w.log.String(), "[ERROR]"), "one line for each alarm")
	require.Contains(t, w.log.String(), "[ERROR]: alarm disk: no space: 3 MiB are free in /data\n")
	require.Contains(t, w.log.String(), "[SYSTEM]: alarm disk is over: seconds=7200\n")
	w.has[alarmDisk] = "no space"
	require.Equal(t, "disk certificate", w.names(time.Second))
	require.Equal(t, w.now, w.look(w.now)[0].since, "another alarm")
}

func TestAMasterThatRestartsIsNoAlarm(t *testing.T) {
	w := watchAlarms()
	w.has[alarmStalled] = "the master is not reached"
	require.Empty(t, w.names(0))
	require.Empty(t, w.names(unreachedAfter-time.Millisecond))
	delete(w.has, alarmStalled)
	require.Empty(t, w.names(time.Millisecond))
	require.Empty(t, w.log.String())
	w.has[alarmStalled] = "the master is not reached"
	require.Empty(t, w.names(time.Second))
	require.Equal(t, alarmStalled, w.names(unreachedAfter))
	require.Contains(t, w.log.String(), "alarm replication-stalled: the master is not reached\n")
}

// What a part logs itself has no second line.
func TestSilentAlarms(t *testing.T) {
	w := watchAlarms()
	w.has[alarmFollowers] = "updates are refused"
	require.Equal(t, alarmFollowers, w.names(0))
	delete(w.has, alarmFollowers)
	require.Empty(t, w.names(time.Second))
	require.Empty(t, w.log.String())
}

func TestWhoMustUseAnotherServer(t *testing.T) {
	w := watchAlarms()
	h := &health{alarms: w.alarms}
	w.has[alarmDisk], w.has[alarmTLS] = "no space", "the certificate expires"
	require.Len(t, h.ready(), 1)
	require.Contains(t, h.ready()[0], "no space (since ")
	require.Empty(t, h.readyToRead())
	require.Len(t, h.notes(), 1)
	w.has[alarmGap] = "lacks updates"
	require.Len(t, h.ready(), 2)
	require.Len(t, h.readyToRead(), 1)
	h.phase.set("stopping")
	require.Equal(t, []string{"stopping"}, h.ready())
	require.Empty(t, h.notes())
}

func TestCertificatesThatExpire(t *testing.T) {
	now := time.Unix(1_700_000_000, 0)
	at := func(left time.Duration) certificates {
		return certificates{{"ports", "/etc/kt.crt", "clients", func() (time.Time, bool) { return now.Add(left), true }},
			{"master", "", "the master", func() (time.Time, bool) { return time.Time{}, false }}}
	}
	require.Empty(t, at(15*24*time.Hour).alarms(now))
	soon := at(13 * 24 * time.Hour).alarms(now)
	require.Len(t, soon, 1)
	require.Contains(t, soon[0].text, "/etc/kt.crt expires on 2023-11-27T22:13:20Z")
	gone := at(-time.Hour).alarms(now)
	require.Contains(t, gone[0].text, "/etc/kt.crt has expired on 2023-11-14T21:13:20Z: clients refuse it. Put a new one")
}

func TestReplicationThatCannotBegin(t *testing.T) {
	f := &following{broken: errors.New("the RTS file is a directory")}
	require.Equal(t, []alarm{{name: alarmStalled, text: "this server does not replicate: the RTS file is a directory"}}, f.alarms(time.Now(), 0))
}

// The table of docs/monitoring.md has every alarm, with its alert.
func TestEveryAlarmIsExplained(t *testing.T) {
	page, err := os.ReadFile("../docs/monitoring.md")
	require.NoError(t, err)
	_, table, _ := strings.Cut(string(page), "\n## Alarms\n")
	table, _, _ = strings.Cut(table, "\n## ")
	for _, k := range alarmKinds() {
		_, row, found := strings.Cut(table, "`"+k.name+"`")
		require.True(t, found, k.name)
		row, _, _ = strings.Cut(row, "\n")
		require.Contains(t, row, "`Gotycoon", k.name)
		require.Equal(t, k.away, strings.Contains(row, "| 503"), k.name)
		require.Equal(t, k.away && !k.reads, strings.Contains(row, "but not with `?reads`"), k.name)
	}
}

// A panic is an ERROR line with the stack, whatever logger has come of the server's, and counted
// also where no line is written.
func TestPanicsAreLoggedAndCounted(t *testing.T) {
	var out bytes.Buffer
	log := newLogger(klog.Original, &out, slog.LevelError)
	require.Error(t, rescue.Do(log.With("port", "lock").WithGroup("x"), "a request", func() { panic("a mistake") }))
	require.Contains(t, out.String(), "[ERROR]: panic: a mistake: a request")
	require.Contains(t, out.String(), "TestPanicsAreLoggedAndCounted", "the stack")
	require.EqualValues(t, 1, log.panics())
	silent := newLogger(klog.Original, &out, klog.LevelSilent)
	require.Error(t, rescue.Do(silent.Logger, "a request", func() { panic("another") }))
	require.EqualValues(t, 1, silent.panics())
	require.NotContains(t, out.String(), "another")
}
