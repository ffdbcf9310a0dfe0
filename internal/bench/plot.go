//go:build linux

package main

import (
	"fmt"
	"os"
	"path/filepath"
)

// plotFrom returns the charts of the ladder. A series without any value is left out, and a chart
// without series too, so that a file of any version can be drawn.
func plotFrom(rows []ladderRow, comment string) []chart {
	var charts []chart
	for _, c := range ladderCharts() {
		drawn := chart{file: c.file, title: c.title, unit: c.unit, logY: c.logY, note: comment}
		for _, s := range c.series {
			if points := pointsOf(rows, s.phase, s.column, s.factor); len(points) > 0 {
				drawn.lines = append(drawn.lines, line{name: s.name, points: points})
			}
		}
		if len(drawn.lines) > 0 {
			charts = append(charts, drawn)
		}
	}
	return charts
}

type ladderChart struct {
	file, title, unit string
	logY              bool
	series            []ladderSeries
}

// ladderSeries is a column of the rows of a phase; factor converts its unit to that of the chart.
type ladderSeries struct {
	name, phase, column string
	factor              float64
}

func ladderCharts() []ladderChart {
	return []ladderChart{
		{"ladder-rate.svg", "Operations per second", "thousands/s", false, []ladderSeries{
			{"fill, bulks of 100", "fill", "rate", 1e-3}, {"random updates, bulks of 100", "update", "rate", 1e-3}, {"random gets over HTTP", "get", "rate", 1e-3}}},
		{"ladder-cpu.svg", "The server's processor time of an operation", "µs", false, []ladderSeries{
			{"fill", "fill", "cpu", 1}, {"random update", "update", "cpu", 1}, {"random get over HTTP", "get", "cpu", 1}}},
		{"ladder-written.svg", "Written to disk for a record of 116 bytes, log included", "bytes", false, []ladderSeries{
			{"fill", "fill", "written", 1}, {"random update", "update", "written", 1}}},
		{"ladder-waits.svg", "Waits of a bulk of 100 random updates", "ms", true, []ladderSeries{
			{"longest", "update", "longest", 1}, {"p99.9", "update", "p999", 1}, {"p99", "update", "p99", 1}, {"p50", "update", "p50", 1}}},
		{"ladder-fill-waits.svg", "Waits of a bulk of 100 records while the file is filled", "ms", true, []ladderSeries{
			{"longest", "fill", "longest", 1}, {"p99.9", "fill", "p999", 1}, {"p99", "fill", "p99", 1}, {"p50", "fill", "p50", 1}}},
		{"ladder-life.svg", "Clean stop, start, and start after kill -9 under load", "s", true, []ladderSeries{
			{"clean stop", "stop", "seconds", 1}, {"first answer after the stop", "start", "seconds", 1}, {"first answer after kill -9", "restart", "seconds", 1}}},
		{"ladder-memory.svg", "Memory and disk", "MiB", true, []ladderSeries{
			{"memory, update phase", "update", "rss", 1}, {"of it without mapped files", "update", "own", 1}, {"database file after the stop", "stop", "file", 1}}},
	}
}

// pointsOf returns the values of a column by size. Zero and less have no place on a logarithmic
// axis.
func pointsOf(rows []ladderRow, phase, column string, factor float64) (points []point) {
	for _, r := range rows {
		if v, ok := r.values[column]; ok && r.phase == phase && v > 0 && r.size > 0 {
			points = append(points, point{float64(r.size), v * factor})
		}
	}
	return points
}

// plot draws a TSV file of the ladder into a directory.
func plot(from, into string) error {
	f, err := os.Open(from)
	if err != nil {
		return err
	}
	defer f.Close()
	rows, comment, err := readRows(f)
	if err != nil {
		return fmt.Errorf("%s: %w", from, err)
	}
	charts := plotFrom(rows, comment)
	if len(charts) == 0 {
		return fmt.Errorf("%s: nothing to draw", from)
	}
	for _, c := range charts {
		if err := os.WriteFile(filepath.Join(into, c.file), c.svg(), 0o644); err != nil {
			return err
		}
	}
	return nil
}
