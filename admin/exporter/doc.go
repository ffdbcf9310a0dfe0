// Package exporter turns the figures of a server into metrics of Prometheus. Each part of the server has a collector, which reads
// the figures when somebody asks and keeps none. The names, units and meanings are in the table of the collector's file;
// docs/monitoring.md has them all.
//
// Neither keys nor any other data of clients are in a label.
package exporter
