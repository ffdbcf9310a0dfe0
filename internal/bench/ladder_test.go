//go:build linux

package main

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestSizes(t *testing.T) {
	for text, want := range map[string]int{"100": 100, "250k": 250_000, "0.25m": 250_000, "1m": million, "64m": 64 * million} {
		got, err := parseSize(text)
		require.NoError(t, err)
		require.Equal(t, want, got)
		again, err := parseSize(sizeName(want))
		require.NoError(t, err)
		require.Equal(t, want, again)
	}
	for _, text := range []string{"", "m", "-1m", "1g", "99", "1e300m", "NaN"} {
		_, err := parseSize(text)
		require.Error(t, err, text)
	}
	o := ladderOptions{sizes: "1m,4m", big: true}
	sizes, err := o.rungs()
	require.NoError(t, err)
	require.Equal(t, []int{million, 4 * million, bigRung}, sizes)
	o.sizes = "1m,,4m"
	_, err = o.rungs()
	require.Error(t, err)
}

func TestRoomIsCheckedBeforeTheStart(t *testing.T) {
	need := roomNeeded(64*million, million)
	require.Greater(t, need, int64(64*million*recordSize*2))
	require.NoError(t, checkRoom([]int{million, 64 * million}, million, "/tmp", need))
	err := checkRoom([]int{million, 64 * million}, million, "/tmp", need-1)
	require.ErrorContains(t, err, "64m records may take 27 GiB of disk, and /tmp has 27 GiB free: set TMPDIR")
	require.Equal(t, 13*time.Minute, estimate([]int{64 * million}, 8*million))
}

func TestRowsAreReadAsTheyWereWritten(t *testing.T) {
	rows := []ladderRow{
		{size: million, phase: "fill", values: map[string]float64{"operations": 1e6, "rate": 123456, "cpu": 2.25, "p50": 0}},
		{size: 250_000, phase: "stop", values: map[string]float64{"seconds": 0.125}},
	}
	var text strings.Builder
	require.NoError(t, writeHead(&text, "a machine"))
	for _, r := range rows {
		require.NoError(t, writeRow(&text, r))
	}
	got, comment, err := readRows(strings.NewReader(text.String()))
	require.NoError(t, err)
	require.Equal(t, rows, got)
	require.Equal(t, "a machine", comment)

	got, _, err = readRows(strings.NewReader("phase\tlater\tsize\nfill\t7\t1000\n"))
	require.NoError(t, err)
	require.Equal(t, []ladderRow{{size: 1000, phase: "fill", values: map[string]float64{"later": 7}}}, got)
}

func TestDamagedRowsAreNamed(t *testing.T) {
	for text, want := range map[string]string{
		"a\tb\n":                           "line 1: no columns",
		"size\tphase\n1\n":                 "line 2: 1 cells under 2 columns",
		"#\nsize\tphase\tp50\n1\tget\tx\n": `line 3: p50: "x" is no number`,
		"size\tphase\tp50\n1\tget\tNaN\n":  "is no number",
		"size\tphase\nmany\tget\n":         `size: "many" is no number`,
	} {
		_, _, err := readRows(strings.NewReader(text))
		require.ErrorContains(t, err, want)
	}
}
