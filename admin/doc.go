// Package admin is the listener for those who run a server: metrics for Prometheus, probes, profiles, the version, and
// whatever else is given to Handle. It is off the data port, where every path is a key.
//
//	/metrics        what Options.Collectors measure
//	/livez          200 while the process does its work, 503 with the reason when it has failed
//	/readyz         200 when requests should be sent here, 503 with one reason per line
//	/version        version, Go, revision
//	/debug/pprof/   profiles, for admins
//
// The listener answers from the moment it starts, which is before the databases are open.
package admin
