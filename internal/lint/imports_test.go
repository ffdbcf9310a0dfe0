package lint

import (
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
)

// arrows are the packages that a package may import: the drawing in ARCHITECTURE.md as a table. A package that may
// import nothing of ours is a leaf. Think twice before you add an arrow; one that points up is a design error.
var arrows = map[string][]string{
	"cmd/ktserver":    {"access", "server", "tools/cli", "tools/manual", "internal/klog", "internal/yrmconf"},
	"cmd/ktremotemgr": {"tools/remote"},
	"cmd/kttimedmgr":  {"tools/timed"},
	"cmd/ktutilmgr":   {"tools/util"},

	"server":         {"access", "internal/browser", "memcache", "binproto", "httpapi", "replication", "snapshot", "db", "ulog", "internal/klog", "internal/netio", "internal/opcount", "internal/portserver", "internal/procinfo", "internal/vfs", "script", "internal/tlsfiles", "internal/tlsport", "admin", "admin/exporter", "admin/figures", "internal/metrics", "admin/api", "admin/console", "internal/rescue", "services", "services/counter", "services/leader", "services/lock", "services/quota", "services/sequence", "internal/exposed", "db/dberr", "db/expr"},
	"admin":          {"internal/browser", "internal/rescue"},
	"admin/api":      {"admin", "internal/browser", "admin/figures", "db", "db/owed", "internal/metrics", "internal/procinfo", "internal/rescue", "snapshot", "db/dberr", "db/expr", "db/record", "services/sequence", "services/counter", "services/lock", "admin/exporter"},
	"admin/console":  {"admin"},
	"admin/exporter": {"admin/figures", "db", "internal/exposed", "internal/metrics", "internal/opcount"},
	"admin/figures":  {},

	"httpapi":                {"access", "internal/browser", "httpapi/date", "httpapi/message", "httpapi/tsv", "db", "ulog", "internal/klog", "internal/netio", "internal/opcount", "internal/lenient", "internal/metrics", "internal/pieces", "db/dberr", "db/record"},
	"httpapi/date":           {},
	"httpapi/message":        {"internal/browser", "internal/lenient", "internal/netio"},
	"httpapi/tsv":            {},
	"binproto":               {"access", "binproto/frame", "db", "internal/exposed", "internal/netio", "internal/opcount", "internal/metrics", "internal/pieces", "db/dberr", "db/expr", "db/record"},
	"binproto/frame":         {},
	"services/counter":       {"access", "services", "services/counter/frame", "internal/exposed", "internal/netio", "internal/metrics"},
	"services/counter/frame": {},

	"access": {},

	"memcache":                      {"access", "db", "internal/browser", "internal/lenient", "internal/netio", "internal/portserver", "internal/metrics", "internal/pieces", "internal/exposed", "db/dberr", "db/expr", "db/record"},
	"services/leader":               {"db", "internal/exposed", "services", "ulog", "db/dberr", "db/expr", "db/record"},
	"services/lock":                 {"access", "db", "internal/browser", "internal/exposed", "services", "services/leader", "internal/netio", "internal/metrics", "db/dberr", "db/record", "internal/portserver"},
	"services/sequence":             {"db", "internal/exposed", "services", "services/internal/webport", "services/leader", "db/dberr", "db/record", "access", "internal/browser", "internal/netio", "internal/portserver", "internal/metrics", "internal/vfs"},
	"services":                      {"access", "internal/browser", "internal/exposed", "internal/metrics", "internal/netio", "internal/portserver"},
	"services/internal/servicetest": {"access", "db", "services", "services/leader", "ulog"},
	"services/internal/webport":     {"access", "db", "internal/browser", "internal/metrics", "internal/netio", "services", "db/dberr"},
	"services/quota":                {"db", "internal/exposed", "internal/vfs", "services", "services/internal/webport", "services/leader", "db/dberr", "db/record"},

	"script":      {"db", "ulog", "internal/klog", "internal/lenient", "internal/pieces", "internal/rescue", "db/dberr", "db/expr", "db/keymatch", "db/record"},
	"snapshot":    {"ulog", "internal/vfs"},
	"replication": {"binproto/frame", "client", "db", "ulog", "internal/klog", "internal/netio", "internal/rescue", "internal/vfs", "db/dberr"},

	"db":                 {"db/owed", "db/filestore", "db/mapstore", "db/memstore", "db/store", "db/voidstore", "ulog", "internal/vfs", "internal/pieces", "internal/rescue", "db/dberr", "db/expr", "db/keymatch", "db/record", "db/replay", "db/ordered"},
	"db/dberr":           {},
	"db/expr":            {"db/dberr"},
	"db/keymatch":        {"db/dberr", "db/owed"},
	"db/record":          {"db/dberr"},
	"db/replay":          {"ulog"},
	"db/ordered":         {"db/expr", "db/store", "ulog"},
	"db/owed":            {"ulog"},
	"db/filestore":       {"db/memstore", "db/store", "internal/metrics", "internal/pieces", "internal/rescue", "ulog/update", "internal/vfs"},
	"db/rebuild":         {"db/filestore", "internal/vfs", "ulog", "db/record"},
	"db/memstore":        {"db/memstore/slab", "db/store", "ulog/update", "internal/pieces"},
	"db/memstore/slab":   {},
	"db/mapstore":        {"db/store", "ulog/update"},
	"db/store":           {"ulog/update", "internal/pieces"},
	"db/store/storetest": {"db/store", "ulog/update"},
	"db/voidstore":       {"db/store", "ulog/update"},
	"ulog":               {"ulog/update", "internal/vfs", "internal/metrics", "internal/pieces", "internal/rescue"},
	"ulog/update":        {},

	"tools/remote":                {"tools/cli", "tools/manual", "tools/show", "client", "db/filestore", "db/rebuild", "snapshot", "internal/vfs", "ulog"},
	"tools/show":                  {},
	"tools/timed":                 {"tools/cli", "tools/manual", "tools/show", "db", "db/filestore", "db/rebuild", "snapshot", "internal/vfs", "ulog", "db/dberr", "db/expr", "db/record", "db/replay"},
	"tools/util":                  {"tools/cli", "tools/manual", "tools/show", "client", "httpapi/date", "httpapi/tsv", "internal/vfs", "ulog"},
	"tools/replsql":               {}, // a module of its own
	"tools/replsql/cmd/ktreplsql": {"tools/replsql"},
	"tools/cli":                   {"tools/manual", "internal/tlsfiles"},
	"tools/manual":                {},
	"client":                      {"httpapi/tsv", "binproto/frame", "services/counter/frame"},

	"internal/netio": {"access", "db/owed", "internal/rawio", "internal/metrics", "internal/pieces"},

	"internal/browser":     {},
	"internal/lenient":     {},
	"internal/exposed":     {},
	"internal/portserver":  {"internal/rescue"},
	"internal/rescue":      {},
	"internal/pieces":      {},
	"internal/rawio":       {},
	"internal/tlsfiles":    {"internal/klog"},
	"internal/tlsport":     {"internal/rawio", "internal/tlsfiles"},
	"internal/metrics":     {},
	"internal/vfs":         {},
	"internal/vfs/crashfs": {"internal/vfs"},
	"internal/vfs/faultfs": {"internal/vfs"},
	"internal/klog":        {},
	"internal/opcount":     {},
	"internal/procinfo":    {},
	"internal/yrmconf":     {},
	"internal/lint":        {},
	"internal/bench":       {"binproto/frame", "internal/tlsfiles", "internal/tlsfiles/testca"},
	"compat":               {},
	"compat/chaos":         {},
	"compat/crash":         {},
	"compat/ktproc":        {},
	"compat/packages":      {},
	"compat/recordings":    {},
	"compat/tutorial":      {},

	"internal/tlsfiles/testca": {},

	"internal/klog/klogtest": {}, // for tests
}

// Arrows point down, so that a package can be understood with those below it only, and a client program does not
// drag in the engine.
func TestImportDirections(t *testing.T) {
	var findings []string
	for _, p := range load(t) {
		findings = append(findings, badImports(p, arrows)...)
	}
	forbid(t, "imports that internal/lint does not allow", findings)
}

func badImports(p *pkg, table map[string][]string) []string {
	var findings []string
	allowed, known := table[p.path]
	if !known {
		return []string{p.path + " is not in the table of packages"}
	}
	for _, f := range p.code {
		for _, path := range f.imports() {
			if !slices.Contains(allowed, path) {
				findings = append(findings, fmt.Sprintf("%s imports %s", f.path, path))
			}
		}
	}
	return findings
}

func TestBadImportsAreFound(t *testing.T) {
	f, err := parseText("ulog/x.go", []byte("package ulog\nimport (\n\"fmt\"\n\"gotycoon/db\"\n\"gotycoon/internal/vfs\"\n)"))
	require.NoError(t, err)
	require.Equal(t, []string{"ulog/x.go imports db"}, badImports(&pkg{path: "ulog", code: []*file{f}}, arrows))
	require.Len(t, badImports(&pkg{path: "util"}, arrows), 1)
}
