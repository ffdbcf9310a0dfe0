package server

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"gotycoon/httpapi"
	"gotycoon/replication"
)

// settings are the options of a running server, for those who ask for them or change them
// (config_get, config_set). Only what HUP can change can be changed: the values in live.
type settings struct {
	cfg       *Config
	live      *live
	following *following
	log       logger
}

// clients returns what clients can do about the options.
func (s *settings) clients() httpapi.Config {
	if s.cfg.Reload.Change == nil {
		return nil // not an interface around nil
	}
	return s
}

// effective returns all options as they are in effect. What tunerepl has changed is shown as it is
// now, not as it was at the start.
func (s *settings) effective() []Setting {
	all := slices.Clone(s.live.effective())
	if s.following.follower == nil {
		return all
	}
	m := s.following.follower.Master()
	started := replication.Master{Host: s.cfg.MasterHost, Port: s.cfg.MasterPort}
	tuned := map[string]string{}
	if s.cfg.Cluster.on() || m.Host != started.Host || m.Port != started.Port {
		tuned["mhost"], tuned["mport"] = m.Host, strconv.Itoa(m.Port)
	}
	tuned["riv"] = strconv.FormatFloat(replication.Milliseconds(m.Interval), 'f', -1, 64)
	if guarded := s.following.catalog.Guarded(); guarded != s.cfg.Replication.ReadOnly {
		tuned["slave-read-only"] = strconv.FormatBool(guarded)
	}
	for i := range all {
		if value, is := tuned[all[i].Name]; is && value != all[i].Value {
			all[i].Value, all[i].Source = value, "as the server was told"
		}
	}
	return all
}

// Rows implements httpapi.Config.
func (s *settings) Rows(name string) (names, values []string, found bool) {
	for _, one := range s.effective() {
		if name == "" || name == one.Name {
			names = append(names, one.Name)
			values = append(values, fmt.Sprintf("running=%t secret=%t source=%q value=%s", one.Reload, one.Secret, one.Source, one.Value))
		}
	}
	return names, values, len(names) > 0
}

// Set implements httpapi.Config.
func (s *settings) Set(name, value, who string) (lasts string, err error) {
	before, known := find(s.effective(), name)
	if known && !before.Reload {
		return "", errors.New(s.instead(name))
	}
	changed, next, err := s.live.change(func(effective []Setting) (Config, error) {
		next, err := s.cfg.Reload.Change(effective, name, value)
		if err == nil && next.Timeout <= 0 {
			err = errors.New("tout: must be above 0")
		}
		if err == nil {
			err = next.checkLive(s.cfg.UpdateLog != "")
		}
		return next, err
	})
	if err != nil {
		return "", err
	}
	if name == "riv" { // a client may have tuned it since
		changed = []string{name}
	}
	s.following.reload(next.MasterInterval, changed)
	lasts = s.lasts(name)
	s.log.system("option changed by %s: %s=%s, before: %s, there after the next start: %s", who, name, value, cmp.Or(before.Value, "none"), lasts)
	return lasts, nil
}

func find(all []Setting, name string) (Setting, bool) {
	i := slices.IndexFunc(all, func(s Setting) bool { return s.Name == name })
	if i < 0 {
		return Setting{}, false
	}
	return all[i], true
}

// lasts says whether the value of an option is there after the next start.
func (s *settings) lasts(name string) string {
	now, _ := find(s.live.effective(), name)
	if configured, _ := find(*s.live.configured.Load(), name); configured.Value == now.Value {
		return "yes"
	}
	if file := s.cfg.Reload.File; file != "" {
		return fmt.Sprintf("no, and not when HUP has %s read again: put %s = %q into it", file, name, now.Value)
	}
	value := now.Value
	if strings.Contains(value, " ") {
		value = "'" + value + "'"
	}
	return fmt.Sprintf("no: start the server with -%s %s", name, value)
}

// instead says how an option changes that cannot change while the server runs.
func (s *settings) instead(name string) string {
	for _, row := range []struct {
		names string
		how   string
	}{
		{"mhost mport rts", "whom this server follows is changed with 'ktremotemgr tunerepl HOST -mport PORT', until the next start"},
		{"slave-read-only", "is changed with 'ktremotemgr tunerepl -ro' and '-rw', until the next start"},
		{"cluster members advertise join", "members are changed with 'ktremotemgr cluster add' and 'remove'"},
		{"scr", "the signal USR1 has the file of the script loaded again; another file comes with the next start"},
		{"access tls-cert tls-key tls-ca tls-crl cluster-secret", "a change of the file's content counts at once; another file comes with the next start"},
		{"log", "rename the file, and the signal HUP or USR1 begins a new one; another name comes with the next start"},
	} {
		if slices.Contains(strings.Fields(row.names), name) {
			return fmt.Sprintf("%s cannot be changed while the server runs: %s", name, row.how)
		}
	}
	if name == "sync-replicas" && s.cfg.Cluster.on() {
		return "sync-replicas is changed in a cluster with 'ktremotemgr cluster require NUMBER'"
	}
	where := "give the server the option -" + name
	if s.cfg.Reload.File != "" {
		where = "put it into " + s.cfg.Reload.File
	}
	return fmt.Sprintf("%s cannot be changed while the server runs: %s, and start the server again", name, where)
}
