// Package admin is the HTTP listener for those who run a server: metrics for Prometheus, probes,
// profiles, the version, and whatever other parts add by Handle. It has a port of its own, because
// on the data port every path is a key.
//
//	/metrics        what Options.Collectors measure
//	/livez          200 while the process works, 503 with the reason after it has failed
//	/readyz         200 if requests may be sent here, else 503 with one reason per line
//	/version        version, Go, revision
//	/debug/pprof/   profiles, for admins
//
// The listener answers as soon as it is started, even before the databases are open.
package admin
