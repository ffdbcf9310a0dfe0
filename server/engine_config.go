package server

import (
	"net/url"
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
}

// IsEngineURL reports whether a value of -pldb is the URL of an engine that several servers share.
func IsEngineURL(s string) bool { return strings.Contains(s, "://") }

// RedactedURL returns what may be shown of the URL of an engine: scheme, user, hosts and database.
// Of a text that is no good URL only the scheme is shown, because a password can be anywhere.
func RedactedURL(s string) string {
	scheme, rest, _ := strings.Cut(s, "://")
	hidden := scheme + "://…"
	u, err := url.Parse(s)
	if err != nil || strings.Count(rest, "@") > 1 || u.Fragment != "" || strings.ContainsAny(u.Path+u.Host, "@#?") {
		return hidden
	}
	if u.User == nil && strings.Contains(rest, "@") {
		return hidden
	}
	shown := url.URL{Scheme: u.Scheme, Host: u.Host, Path: u.Path}
	if u.User != nil {
		shown.User = url.User(u.User.Username())
	}
	return shown.String()
}
