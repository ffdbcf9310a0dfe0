// Package exporter turns the figures of a server into Prometheus metrics. Each part of the server
// has a collector, which reads the figures at each scrape and keeps none. A table in the
// collector's file has the names, units and meanings; docs/monitoring.md lists them all.
//
// Labels contain neither keys nor other data of clients.
package exporter
