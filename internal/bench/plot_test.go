//go:build linux

package main

import (
	"bytes"
	"encoding/xml"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func ladderSample() []ladderRow {
	var rows []ladderRow
	for _, size := range []int{250_000, million, 64 * million} {
		f := float64(size)
		rows = append(rows,
			ladderRow{size: size, phase: "fill", values: map[string]float64{"rate": 2e11 / f, "cpu": f / 1e6, "written": f / 1e4, "p50": 1, "longest": f / 1e5}},
			ladderRow{size: size, phase: "stop", values: map[string]float64{"seconds": 0}})
	}
	return rows
}

func TestPicturesAreWellFormedAndAlwaysTheSame(t *testing.T) {
	charts := plotFrom(ladderSample(), `a <machine> & "more"`)
	require.NotEmpty(t, charts)
	again := plotFrom(ladderSample(), `a <machine> & "more"`)
	for i, c := range charts {
		svg := c.svg()
		require.Equal(t, svg, again[i].svg())
		names := elements(t, svg)
		require.Equal(t, "svg", names[0])
		require.Contains(t, names, "polyline")
		require.NotContains(t, string(svg), "NaN")
		require.NotContains(t, string(svg), "Inf")
		require.NotContains(t, string(svg), "%!")
		require.Contains(t, string(svg), "a &lt;machine&gt; &amp; ")
	}
}

// The pictures in the documentation are those of the figures beside them, and the page shows all of
// them. After a change of the drawing: go run ./internal/bench -plot docs/images/ladder.tsv
func TestPicturesInTheDocumentation(t *testing.T) {
	const docs = "../../docs"
	page, err := os.ReadFile(docs + "/tuning.md")
	require.NoError(t, err)
	dir := t.TempDir()
	require.NoError(t, plot(docs+"/images/ladder.tsv", dir))
	for _, c := range ladderCharts() {
		want, err := os.ReadFile(filepath.Join(dir, c.file))
		require.NoError(t, err)
		got, err := os.ReadFile(filepath.Join(docs, "images", c.file))
		require.NoError(t, err)
		require.Equal(t, string(want), string(got), c.file)
		require.Contains(t, string(page), "(images/"+c.file+")")
	}
}

func elements(t *testing.T, svg []byte) (names []string) {
	for d := xml.NewDecoder(bytes.NewReader(svg)); ; {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			return names
		}
		require.NoError(t, err)
		if e, ok := token.(xml.StartElement); ok {
			names = append(names, e.Name.Local)
		}
	}
}

// What has no value is left out, instead of being drawn at nought.
func TestChartsAreMadeOfWhatIsThere(t *testing.T) {
	charts := plotFrom(ladderSample(), "")
	var files []string
	for _, c := range charts {
		files = append(files, c.file)
	}
	require.Equal(t, []string{"ladder-rate.svg", "ladder-cpu.svg", "ladder-written.svg", "ladder-fill-waits.svg"}, files)
	require.Len(t, charts[3].lines, 2)
	require.Equal(t, []point{{250_000, 800}, {million, 200}, {64 * million, 3.125}}, charts[0].lines[0].points)
}

func TestPlotReadsAndWritesFiles(t *testing.T) {
	dir := t.TempDir()
	var text strings.Builder
	require.NoError(t, writeHead(&text, "a machine"))
	for _, r := range ladderSample() {
		require.NoError(t, writeRow(&text, r))
	}
	from := filepath.Join(dir, "ladder.tsv")
	require.NoError(t, os.WriteFile(from, []byte(text.String()), 0o600))
	require.NoError(t, plot(from, dir))
	svg, err := os.ReadFile(filepath.Join(dir, "ladder-cpu.svg"))
	require.NoError(t, err)
	require.Equal(t, plotFrom(ladderSample(), "a machine")[1].svg(), svg)

	require.NoError(t, os.WriteFile(from, []byte("size\tphase\n"), 0o600))
	require.ErrorContains(t, plot(from, dir), "nothing to draw")
}

func TestAxes(t *testing.T) {
	a := logAxis([]float64{3, 40}, 100, 0)
	require.Equal(t, []float64{2, 5, 10, 20, 50}, a.ticks)
	require.InDelta(t, 100, a.at(2), 1e-9)
	require.InDelta(t, 0, a.at(50), 1e-9)
	require.InDelta(t, 50, a.at(10), 1e-9)
	require.InEpsilonSlice(t, []float64{0.1, 1, 10, 100, 1000, 10_000, 100_000, 1e6, 1e7}, logAxis([]float64{0.1, 9e6}, 0, 1).ticks, 1e-9)
	one := logAxis([]float64{1, 1}, 0, 1)
	require.Less(t, one.least, one.most, "a single value has an axis too")

	l := linearAxis([]float64{7, 26}, 100, 0)
	require.Equal(t, []float64{0, 5, 10, 15, 20, 25, 30}, l.ticks)
	require.InDelta(t, 100-26.0/30*100, l.at(26), 1e-9)
	for _, most := range []float64{1e-3, 0.9, 1, 5, 6, 7, 99, 100, 101, 12345} {
		l := linearAxis([]float64{most}, 0, 1)
		require.GreaterOrEqual(t, l.most, most)
		require.LessOrEqual(t, len(l.ticks), 8)
		require.Greater(t, len(l.ticks), 2)
	}
	require.Equal(t, []float64{1, 4}, sizeAxis([]float64{4, 1, 4}, 0, 1).ticks)
}

func TestLabels(t *testing.T) {
	for v, want := range map[float64]string{0: "0", 0.154: "0.154", 2.5: "2.5", 26.04: "26", 142.3: "142", 999.6: "1,000", 8477: "8,477", 20_000: "20,000", 250_000: "250k", 3.2e6: "3,200k", 2e8: "200M"} {
		require.Equal(t, want, label(v))
	}
}

func TestNamesStandApart(t *testing.T) {
	require.Equal(t, []float64{17, 0, 50}, spread([]float64{1, 0, 50}, 17, 0, 100))
	got := spread([]float64{100, 99, 98, 10}, 17, 0, 100)
	require.Equal(t, []float64{100, 83, 66, 10}, got)
	slices.Sort(got)
	for i := 1; i < len(got); i++ {
		require.GreaterOrEqual(t, got[i]-got[i-1], 17.0)
	}
}
