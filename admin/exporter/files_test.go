package exporter_test

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"

	"gotycoon/admin/exporter"
	"gotycoon/internal/needs"
	"gotycoon/server"
)

const (
	page      = "../../docs/monitoring.md"
	dashboard = "../../packaging/monitoring/gotycoon-dashboard.json"
	alerts    = "../../packaging/monitoring/gotycoon-alerts.yaml"
)

// known are the names that expressions may use: those of the definitions, with what histograms add,
// and those of Go and the process.
func known(t *testing.T) map[string]bool {
	t.Helper()
	names := map[string]bool{"up": true}
	for _, d := range server.Metrics() {
		if d.Kind != exporter.Histogram {
			names[d.Name] = true
			continue
		}
		for _, part := range []string{"_bucket", "_sum", "_count"} {
			names[d.Name+part] = true
		}
	}
	registry := prometheus.NewPedanticRegistry()
	registry.MustRegister(exporter.Process(exporter.Server{Started: time.Now(), Ready: func() bool { return true }})...)
	families, err := registry.Gather()
	require.NoError(t, err)
	for _, f := range families {
		names[f.GetName()] = true
	}
	return names
}

var metricName = regexp.MustCompile(`\b(?:gotycoon|process|go)_[a-z0-9_]+`)

// requireKnown checks the metrics that a text names.
func requireKnown(t *testing.T, names map[string]bool, text string) {
	t.Helper()
	for _, name := range metricName.FindAllString(text, -1) {
		require.True(t, names[name], "%s is not exported: %s", name, text)
	}
}

func TestNames(t *testing.T) {
	seen := map[string]bool{}
	for _, d := range server.Metrics() {
		require.False(t, seen[d.Name], d.Name)
		seen[d.Name] = true
		require.Regexp(t, `^gotycoon_[a-z_]+$`, d.Name)
		require.Equal(t, d.Kind == exporter.Counter, strings.HasSuffix(d.Name, "_total"), d.Name)
		require.Regexp(t, `^[A-Z0-9].*\.$`, d.Help, d.Name)
	}
}

// TestPage: the table of docs/monitoring.md has exactly the metrics that there are.
func TestPage(t *testing.T) {
	text, err := os.ReadFile(page)
	require.NoError(t, err)
	var rows []string
	for line := range strings.Lines(string(text)) {
		if strings.HasPrefix(line, "| `gotycoon_") {
			rows = append(rows, strings.TrimSpace(line))
		}
	}
	var want []string
	for _, d := range server.Metrics() {
		want = append(want, fmt.Sprintf("| `%s` | %s | %s | %s |", d.Name, d.Kind, strings.Join(d.Labels, ", "), d.Help))
	}
	require.Equal(t, strings.Join(want, "\n"), strings.Join(rows, "\n"))
}

// panel is the part of a panel of Grafana that is checked.
type panel struct {
	ID      int
	Type    string
	Title   string
	GridPos struct{ H, W, X, Y int }
	Targets []struct{ Expr, RefID string }
	Panels  []panel
}

func TestDashboard(t *testing.T) {
	text, err := os.ReadFile(dashboard)
	require.NoError(t, err)
	var d struct {
		UID, Title    string
		SchemaVersion int
		Panels        []panel
		Templating    struct {
			List []struct{ Name, Definition string }
		}
	}
	require.NoError(t, json.Unmarshal(text, &d))
	require.Equal(t, "gotycoon", d.UID)
	require.NotZero(t, d.SchemaVersion)
	names, ids := known(t), map[int]bool{}
	covered := map[string]bool{}
	for i, p := range d.Panels {
		require.NotZero(t, p.ID)
		require.False(t, ids[p.ID], "two panels have the number %d", p.ID)
		ids[p.ID] = true
		require.NotEmpty(t, p.Title)
		require.LessOrEqual(t, p.GridPos.X+p.GridPos.W, 24)
		for _, other := range d.Panels[:i] {
			require.False(t, overlap(p, other), "%s and %s are in one place", p.Title, other.Title)
		}
		require.Equal(t, p.Type == "row", len(p.Targets) == 0, p.Title)
		for _, target := range p.Targets {
			requireKnown(t, names, target.Expr)
			require.NotEmpty(t, metricName.FindString(target.Expr), target.Expr)
			require.Equal(t, strings.Count(target.Expr, "("), strings.Count(target.Expr, ")"), target.Expr)
			for _, name := range metricName.FindAllString(target.Expr, -1) {
				covered[name] = true
			}
		}
	}
	for _, v := range d.Templating.List {
		requireKnown(t, names, v.Definition)
	}
	require.Greater(t, len(covered), 40)
}

func overlap(a, b panel) bool {
	p, q := a.GridPos, b.GridPos
	return p.X < q.X+q.W && q.X < p.X+p.W && p.Y < q.Y+q.H && q.Y < p.Y+p.H
}

func TestAlerts(t *testing.T) {
	text, err := os.ReadFile(alerts)
	require.NoError(t, err)
	requireKnown(t, known(t), string(text))
	page, err := os.ReadFile(page)
	require.NoError(t, err)
	rules := regexp.MustCompile(`(?m)^ *- alert: (\w+)$`).FindAllSubmatch(text, -1)
	require.Greater(t, len(rules), 10)
	for _, rule := range rules {
		require.Contains(t, string(page), "| `"+string(rule[1])+"` |", "docs/monitoring.md explains each alert")
	}
	promtool := needs.Program(t, "prometheus", "promtool")
	out, err := exec.CommandContext(t.Context(), promtool, "check", "rules", alerts).CombinedOutput()
	require.NoError(t, err, string(out))
	out, err = exec.CommandContext(t.Context(), promtool, "check", "config", filepath.Join(filepath.Dir(alerts), "prometheus.yaml")).CombinedOutput()
	require.NoError(t, err, string(out))
}

// TestAlertsFire: the rules are tried on what servers show while something is wrong.
func TestAlertsFire(t *testing.T) {
	promtool := needs.Program(t, "prometheus", "promtool")
	rules, err := filepath.Abs(alerts)
	require.NoError(t, err)
	args := []string{"test", "rules"}
	for _, name := range []string{"cluster.yaml", "engine.yaml", "alarms.yaml"} {
		text, err := os.ReadFile(filepath.Join("testdata", name))
		require.NoError(t, err)
		path := filepath.Join(t.TempDir(), name)
		require.NoError(t, os.WriteFile(path, []byte(strings.Replace(string(text), "[ALERTS]", "["+rules+"]", 1)), 0o644))
		args = append(args, path)
	}
	out, err := exec.CommandContext(t.Context(), promtool, args...).CombinedOutput()
	require.NoError(t, err, string(out))
}
