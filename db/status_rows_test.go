package db

import (
	"encoding/json"
	"gotycoon/db/expr"
	"maps"
	"os"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestStatusRowsAreThoseOfTheOriginal compares all rows of databases without records, and the names
// of the others.
func TestStatusRowsAreThoseOfTheOriginal(t *testing.T) {
	profiles := mustReadProfiles(t)
	entries, err := os.ReadDir("../compat/testdata/http")
	require.NoError(t, err)
	kinds := map[expr.Kind]bool{}
	for _, file := range entries {
		if file.Name() == "90-lifecycle.jsonl" { // of another form
			continue
		}
		for _, c := range mustReadGolden(t, "http/"+file.Name()) {
			for _, s := range append(c.Setup, c.Steps...) {
				if s.procedure() != "status" || s.outputs(t)["ERROR"] != "" {
					continue
				}
				e, err := expr.Parse(findExpr(profiles[c.Server], s.inputs(t)["DB"]))
				require.NoError(t, err)
				kinds[e.Kind] = true
				requireRows(t, c.Name, e, s.outputs(t))
			}
		}
	}
	require.Len(t, kinds, 10)
}

func requireRows(t *testing.T, name string, e expr.Expr, want map[string]string) {
	t.Helper()
	rows := expr.StatusRows(e)
	changing := []string{"count", "size", "realsize"}
	if want["count"] != "0" { // so have the tree's pages; one of these databases is open for reading only
		changing = append(changing, "cusage", "first", "icnt", "last", "lcnt", "pnum", "root", "flags")
	}
	for _, row := range changing {
		if _, ok := want[row]; ok {
			rows[row] = want[row]
		}
	}
	require.Equal(t, want, rows, name)
	if want["count"] == "0" && e.Kind != expr.ProtoHash && e.Kind != expr.ProtoTree { // those two count wrong
		require.Equal(t, want["size"], strconv.FormatInt(expr.BaseSize(e), 10), name)
	}
}

// mustReadProfiles returns the databases of each server that was recorded.
func mustReadProfiles(t *testing.T) map[string][]string {
	t.Helper()
	content, err := os.ReadFile("../compat/testdata/kt-servers.json")
	require.NoError(t, err)
	var profiles map[string]struct{ Dbs []string }
	require.NoError(t, json.Unmarshal(content, &profiles))
	exprs := map[string][]string{}
	for name, p := range profiles {
		exprs[name] = p.Dbs
	}
	return exprs
}

// findExpr returns the database that the value of a DB row names.
func findExpr(exprs []string, name string) string {
	if i, err := strconv.Atoi(name); err == nil {
		return exprs[i]
	}
	for _, raw := range exprs {
		if e, err := expr.Parse(raw); err == nil && e.Name == name {
			return raw
		}
	}
	return exprs[0]
}

func TestStatusRowsShowParameters(t *testing.T) {
	for _, c := range []struct {
		raw  string
		want map[string]string
	}{
		{"x.kct#apow=4#fpow=5#bnum=6#msiz=0#dfunit=8#psiz=9#pccap=10#opts=slc#rcomp=dec", map[string]string{
			"apow": "4", "fpow": "5", "bnum": "6", "msiz": "0", "dfunit": "8", "psiz": "9", "pccap": "10", "opts": "7",
			"rcomp": "decimal"}},
		{"x.kch#bnum=0#apow=0#dfunit=0", map[string]string{"bnum": "1048583", "apow": "0", "dfunit": "0", "rcomp": ""}},
		{"*#opts=slc#capcnt=5#capsiz=6#ktopts=p#ktcapcnt=7#ktcapsiz=8", map[string]string{
			"opts": "4", "capcnt": "5", "capsiz": "6", "ktopts": "2", "ktcapcnt": "7", "ktcapsiz": "8"}},
	} {
		e, err := expr.Parse(c.raw)
		require.NoError(t, err)
		rows := expr.StatusRows(e)
		maps.DeleteFunc(rows, func(row, _ string) bool { _, ok := c.want[row]; return !ok })
		maps.DeleteFunc(c.want, func(_, value string) bool { return value == "" })
		require.Equal(t, c.want, map[string]string(rows), c.raw)
	}
}
