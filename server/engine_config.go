package server

import (
	"strings"
	"time"
)

// EngineConfig is for databases whose records are in an engine that several servers share: -pldb
// with a URL. Zero values take the defaults.
type EngineConfig struct {
	Timeout   time.Duration // of an operation, retries included (-engine-timeout); 10 s
	Lanes     int           // groups under way (-engine-lanes); 2
	Readers   int           // requests of reads under way (-engine-readers); 4
	Group     int           // operations of a group (-engine-group); 512
	Queue     int           // operations that wait (-engine-queue); 65,536
	QueueSize int64         // and what they bring (-engine-queue-size); 64 MiB
	KeepAge   time.Duration // of the engine's log (-engine-log-age); 1 h
	KeepSize  int64         // and its size (-engine-log-size); 4 GiB
	Wait      time.Duration // for the engine at the start (-engine-wait); 30 s
	Copies    string        // where files for commands of synchronize are made (-engine-copies); $TMPDIR, /var/tmp
}

// IsEngineURL reports whether a value of -pldb is the URL of an engine that several servers share.
func IsEngineURL(s string) bool { return strings.Contains(s, "://") }

// isConnString reports whether a value of -pldb has the other form that libpq knows: words such as
// host=db1 password=… dbname=kt.
func isConnString(s string) bool {
	words, _, _ := strings.Cut(s, "://")
	return strings.Contains(words, "password=")
}

// RedactedURL returns what may be shown of a value of -pldb: of the URL of an engine scheme, user,
// hosts and database. Where it is not clear which part is the password, the scheme alone is shown.
func RedactedURL(s string) string {
	if isConnString(s) {
		return "…"
	}
	scheme, rest, is := strings.Cut(s, "://")
	switch {
	case !is:
		return s
	case strings.Trim(scheme, "abcdefghijklmnopqrstuvwxyz") != "":
		return "…"
	}
	user, where, named := strings.Cut(rest, "@")
	if !named {
		user, where = "", rest
	}
	if strings.ContainsAny(user, "/?#") || strings.ContainsAny(where, "@#") {
		return scheme + "://…"
	}
	user, _, _ = strings.Cut(user, ":")
	where, _, _ = strings.Cut(where, "?")
	if named {
		where = user + "@" + where
	}
	return scheme + "://" + where
}
