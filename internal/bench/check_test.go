//go:build linux

package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestSlowerThanRecordedFails(t *testing.T) {
	recorded := []figure{{"a", 1, 1}, {"b", 1, 1}, {"c", 1, 1}, {"d", 1, 1}}
	now := []figure{{"a", 9, 1.14}, {"b", 1, 1.16}, {"c", 1, 0.86}, {"d", 1, 0.88}}
	verdicts := compare(recorded, now, 15)
	require.Equal(t, []string{"b"}, namesOf(verdicts, slower), "units count, not microseconds")
	require.Equal(t, []string{"c"}, namesOf(verdicts, faster))
	require.InDelta(t, 1.16, verdicts[1].ratio(), 1e-9)
	require.EqualError(t, judge(verdicts, 15), "more than 15 % slower than recorded: b")
	require.NoError(t, judge(compare(recorded, now, 17), 17), "faster is no failure")
}

// A workload that is missing on one side must not pass in silence.
func TestWhatCannotBeComparedFails(t *testing.T) {
	verdicts := compare([]figure{{"a", 1, 1}, {"old", 1, 1}}, []figure{{"a", 1, 1}, {"new", 1, 1}}, 15)
	require.Equal(t, []string{"new"}, namesOf(verdicts, unrecorded))
	require.Equal(t, []string{"old"}, namesOf(verdicts, gone))
	require.Zero(t, verdicts[1].ratio())
	require.ErrorContains(t, judge(verdicts, 15), "record anew with -record: new, old")
}

func TestTableIsReadAsItWasWritten(t *testing.T) {
	figures := []figure{{name: "HTTP set, :", units: 0.25, micros: 12.5}, {name: "Go: x", units: 0.0125, micros: 1.125}}
	path := filepath.Join(t.TempDir(), "recorded.tsv")
	require.NoError(t, writeFigures(path, "a machine", figures))
	got, err := readFigures(path)
	require.NoError(t, err)
	require.Equal(t, figures, got)
	_, err = readFigures(path + "x")
	require.ErrorIs(t, err, os.ErrNotExist)
}

func TestDamagedTablesAreRefused(t *testing.T) {
	for text, want := range map[string]string{
		"":                                   "no figures",
		"# only a comment\n":                 "no figures",
		"a\t1\t1\n":                          "the head is",
		figuresHead + "\na\t1\n":             "not three cells",
		figuresHead + "\na\tx\t1\n":          "no figures",
		figuresHead + "\na\t0\t1\n":          "no figures",
		figuresHead + "\na\t-1\t1\n":         "no figures",
		figuresHead + "\na\t1\t1\na\t1\t1\n": "a is there twice",
	} {
		_, err := parseFigures(text)
		require.ErrorContains(t, err, want, "%q", text)
	}
}

// The table in the repository has a row for every workload, and no other: else make bench-check
// fails for everybody.
func TestEveryWorkloadIsRecorded(t *testing.T) {
	recorded, err := readFigures("recorded.tsv")
	require.NoError(t, err)
	var now []figure
	for _, w := range workloads() {
		now = append(now, figure{name: w.name, units: 1})
	}
	verdicts := compare(recorded, now, 15)
	require.Empty(t, namesOf(verdicts, unrecorded))
	require.Empty(t, namesOf(verdicts, gone))
}

func TestMedianOfSamplesCounts(t *testing.T) {
	c := &checker{workloads: []workload{{name: "a"}, {name: "b"}}, samples: map[string][]figure{
		"a": {{"a", 50, 5}, {"a", 10, 1}, {"a", 20, 2}},
		"b": {{"b", 7, 7}},
	}}
	require.Equal(t, []figure{{"a", 20, 2}, {"b", 7, 7}}, c.figures())
}

func TestChainIsOneRing(t *testing.T) {
	const n = 1000
	links := ring(n)
	seen, at := map[uint32]bool{}, uint32(0)
	for range n {
		at = links[at]
		seen[at] = true
	}
	require.Len(t, seen, n)
	require.Zero(t, at)
}

func TestCalibrationEchoes(t *testing.T) {
	c, err := newCalibration(effort{pieces: 1, links: 1000, steps: 1000, echoes: 10})
	require.NoError(t, err)
	defer c.close()
	unit, err := c.unit()
	require.NoError(t, err)
	require.Positive(t, unit)
	require.NotZero(t, c.checksum)
	require.Positive(t, c.share())
	require.LessOrEqual(t, c.share(), 1.01, "one thread cannot use more than a processor")
}
