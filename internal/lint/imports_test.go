package lint

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// arrows are the packages that a package may import: the drawing in ARCHITECTURE.md as a table. A
// package that may import nothing of ours is a leaf. Think twice before you add an arrow; one that
// points up is a design error.
var arrows = map[string][]string{
	"cmd/ktserver":    {"access", "internal/klog", "internal/yrmconf", "server", "tools/cli", "tools/manual"},
	"cmd/ktremotemgr": {"tools/remote"},
	"cmd/kttimedmgr":  {"tools/timed"},
	"cmd/ktutilmgr":   {"tools/util"},

	"server":         {"access", "admin", "admin/api", "admin/console", "admin/exporter", "admin/status", "binproto", "client/wire/frame", "cluster", "cluster/election", "db", "db/dberr", "db/engine", "db/engine/gather", "db/engine/pg", "db/engine/relay", "db/expr", "db/gate", "db/plugged", "db/rebuild", "httpapi", "internal/browser", "internal/forward", "internal/klog", "internal/member", "internal/metrics", "internal/netio", "internal/opcount", "internal/portserver", "internal/procinfo", "internal/rescue", "internal/tlsfiles", "internal/tlsport", "internal/version", "internal/vfs", "internal/words", "memcache", "replication", "script", "services", "services/counter", "services/leader", "services/lock", "services/quota", "services/sequence", "snapshot", "ulog"},
	"admin":          {"internal/browser", "internal/rescue"},
	"admin/api":      {"admin", "admin/status", "db", "db/dberr", "db/expr", "db/owed", "db/record", "internal/browser", "internal/metrics", "internal/procinfo", "internal/rescue", "snapshot", "db/pages", "ulog"},
	"admin/console":  {"admin"},
	"admin/exporter": {"admin/status", "db", "internal/metrics", "internal/opcount", "ulog"},
	"admin/status":   {"internal/metrics"},

	"httpapi":          {"access", "client/wire/frame", "db", "db/checksum", "db/dberr", "db/keymatch", "db/record", "db/store", "httpapi/date", "httpapi/jsonrows", "httpapi/message", "client/wire/tsv", "internal/browser", "internal/klog", "internal/lenient", "internal/metrics", "internal/netio", "internal/opcount", "ulog"},
	"httpapi/date":     {},
	"httpapi/message":  {"internal/browser", "internal/lenient", "internal/netio"},
	"httpapi/jsonrows": {"client/wire/tsv"},
	"binproto":         {"access", "client/wire/frame", "db", "db/dberr", "db/expr", "db/filestore", "db/record", "internal/metrics", "internal/netio", "internal/opcount", "internal/pieces"},
	"services/counter": {"access", "client/wire/frame", "internal/browser", "internal/metrics", "internal/netio", "internal/portserver", "services", "client/wire/counter/frame"},

	"cluster":          {"cluster/election", "internal/klog", "internal/rescue", "internal/vfs", "internal/words"},
	"cluster/election": {"internal/vfs"},

	"access":            {},
	"access/accesstest": {"access"}, // for tests

	"memcache":                      {"access", "client/wire/frame", "db", "db/dberr", "db/expr", "db/record", "internal/browser", "internal/lenient", "internal/metrics", "internal/netio", "internal/portserver"},
	"services/leader":               {"db", "db/dberr", "db/expr", "db/record", "internal/metrics", "services", "ulog", "db/pages"},
	"services/lock":                 {"access", "client/wire/frame", "db", "db/dberr", "db/pages", "db/record", "internal/browser", "internal/metrics", "internal/netio", "internal/portserver", "internal/rawio", "services", "services/leader"},
	"services/sequence":             {"client/wire/frame", "db", "db/pages", "db/record", "internal/metrics", "services", "services/internal/webport", "services/leader"},
	"services":                      {"access", "client/wire/frame", "internal/browser", "internal/metrics", "internal/netio", "internal/portserver"},
	"services/internal/servicetest": {"access", "access/accesstest", "db", "internal/browser", "services", "services/leader", "ulog"},
	"services/internal/webport":     {"access", "client/wire/frame", "db", "db/dberr", "db/pages", "internal/browser", "internal/metrics", "internal/netio", "internal/portserver", "services"},
	"services/quota":                {"client/wire/frame", "db", "db/dberr", "db/record", "internal/metrics", "internal/vfs", "services", "services/internal/webport", "services/leader"},

	"script":      {"db", "db/dberr", "db/expr", "db/keymatch", "db/record", "internal/klog", "internal/lenient", "internal/pieces", "internal/rescue", "ulog"},
	"snapshot":    {"internal/vfs", "ulog"},
	"replication": {"client", "client/wire/frame", "db", "db/dberr", "db/filestore", "db/store", "internal/klog", "internal/netio", "internal/rescue", "internal/vfs", "internal/words", "ulog"},

	"db":                  {"db/dberr", "db/engine", "db/engine/gather", "db/expr", "db/filestore", "db/gate", "db/memstore", "db/ordered", "db/owed", "db/plugged", "db/record", "db/replay", "db/store", "internal/pieces", "internal/rescue", "internal/vfs", "ulog"},
	"db/checksum":         {"db/dberr", "db/owed", "db/record", "db/store"},
	"db/dberr":            {},
	"db/engine":           {"ulog"},
	"db/engine/gather":    {"db/engine", "db/record", "internal/metrics", "ulog"},
	"db/engine/mem":       {"db/engine", "ulog"}, // for tests
	"db/engine/pg":        {"db/engine", "ulog"},
	"db/engine/relay":     {"db/engine"},
	"db/expr":             {"db/dberr"},
	"db/gate":             {"db/dberr", "ulog"},
	"db/pages":            {"db/owed", "db/record", "db/store"},
	"db/plugged":          {"db/mapstore", "db/store", "db/voidstore"},
	"db/keymatch":         {"db/dberr", "db/owed", "db/store"},
	"db/record":           {"db/dberr"},
	"db/replay":           {"internal/vfs", "ulog"},
	"db/ordered":          {"db/expr", "db/store", "ulog"},
	"db/owed":             {"ulog"},
	"db/filestore/paging": {},
	"db/filestore/run":    {"db/filestore/paging", "internal/pieces"},
	"db/filestore":        {"db/filestore/paging", "db/filestore/run", "db/memstore", "db/store", "internal/klog", "internal/metrics", "internal/pieces", "internal/procinfo", "internal/rescue", "internal/vfs", "ulog/update"},
	"db/rebuild":          {"db/filestore", "db/filestore/run", "db/record", "internal/vfs", "ulog"},
	"db/memstore":         {"db/memstore/slab", "db/store", "internal/pieces", "ulog/update"},
	"db/memstore/slab":    {},
	"db/mapstore":         {"db/store", "ulog/update"},
	"db/store":            {"internal/pieces", "ulog/update"},
	"db/store/storetest":  {"db/store", "ulog/update"},
	"db/voidstore":        {"db/store", "ulog/update"},
	"ulog":                {"client/wire/frame", "internal/metrics", "internal/pieces", "internal/rescue", "internal/vfs", "ulog/update"},
	"ulog/update":         {},

	"db/engine/enginetest": {"db/engine", "db/record", "ulog"},      // for tests
	"db/engine/pg/pgtest":  {"internal/needs", "internal/pgserver"}, // for tests

	"tools/remote":                {"client", "db/checksum", "db/filestore", "db/owed", "db/rebuild", "db/record", "db/store", "internal/vfs", "snapshot", "tools/cli", "tools/load", "tools/manual", "tools/redisfile", "tools/show", "ulog"},
	"tools/load":                  {"client/wire/frame", "internal/histogram"},
	"tools/redisfile":             {},
	"tools/show":                  {},
	"tools/timed":                 {"db", "db/dberr", "db/expr", "db/filestore", "db/rebuild", "db/record", "db/replay", "internal/vfs", "snapshot", "tools/cli", "tools/manual", "tools/show", "ulog"},
	"tools/util":                  {"client", "client/wire/tsv", "db", "db/checksum", "db/engine", "db/engine/pg", "db/rebuild", "db/record", "httpapi/date", "internal/version", "internal/vfs", "snapshot", "tools/cli", "tools/manual", "tools/show", "ulog"},
	"tools/replsql":               {"internal/version"}, // a module of its own
	"tools/replsql/cmd/ktreplsql": {"tools/replsql"},
	"tools/cli":                   {"internal/tlsfiles", "internal/version", "tools/manual"},
	"tools/manual":                {},
	"client":                      {"client/wire/frame", "client/wire/tsv", "client/wire/counter/frame"}, // a module of its own
	"client/wire/frame":           {},
	"client/wire/tsv":             {},
	"client/wire/counter/frame":   {},

	"internal/netio": {"access", "client/wire/frame", "db/owed", "internal/metrics", "internal/pieces", "internal/rawio"},

	"internal/browser":     {},
	"internal/forward":     {"access", "client/wire/frame", "internal/member", "internal/netio"},
	"internal/member":      {"access", "client/wire/frame", "internal/netio", "internal/tlsport"},
	"internal/lenient":     {},
	"internal/portserver":  {"internal/rescue"},
	"internal/rescue":      {},
	"internal/pieces":      {},
	"internal/rawio":       {},
	"internal/tlsfiles":    {"internal/klog"},
	"internal/tlsport":     {"internal/rawio", "internal/tlsfiles"},
	"internal/metrics":     {},
	"internal/version":     {},
	"internal/vfs":         {},
	"internal/vfs/crashfs": {"internal/vfs"},
	"internal/vfs/faultfs": {"internal/vfs"},
	"internal/klog":        {},
	"internal/opcount":     {},
	"internal/procinfo":    {},
	"internal/yrmconf":     {},
	"internal/lint":        {},
	"internal/words":       {},
	"packaging/legal":      {},
	"packaging/kubernetes": {}, // a module of its own
	"internal/runcluster":  {"db/engine/pg", "internal/pgserver"},
	"internal/bench":       {"client/wire/frame", "db/engine/pg", "internal/freeport", "internal/histogram", "internal/pgserver", "internal/rawio", "internal/tlsfiles", "internal/tlsfiles/testca"},
	"internal/histogram":   {},
	"compat":               {},
	"compat/chaos":         {},
	"compat/openapi":       {}, // a module of its own
	"compat/client":        {},
	"compat/cluster":       {},
	"compat/upgrade":       {},
	"compat/crash":         {},
	"compat/engine":        {},
	"compat/history":       {},
	"compat/ktproc":        {"internal/freeport"},
	"compat/packages":      {},
	"compat/recordings":    {},
	"compat/tutorial":      {},

	"internal/tlsfiles/testca": {},

	"internal/klog/klogtest": {}, // for tests
	"internal/needs":         {}, // for tests
	"internal/freeport":      {}, // for tests, and for who starts a PostgreSQL of its own
	"internal/pgserver":      {"internal/freeport"},
}

// Arrows point down, so that a package can be understood with those below it only, and a client
// program does not drag in the engine.
func TestImportDirections(t *testing.T) {
	var findings []string
	for _, p := range load(t) {
		findings = append(findings, badImports(p, arrows)...)
	}
	forbid(t, "imports that internal/lint does not allow", findings)
}

// PostgreSQL's client stays below the engine that needs it: nobody else goes past the engine.
// tools/replsql is a module of its own.
func TestOneEngineHasPostgreSQL(t *testing.T) {
	var findings []string
	for _, p := range load(t) {
		if p.path == "db/engine/pg" || strings.HasPrefix(p.path, "db/engine/pg/") || strings.HasPrefix(p.path, "tools/replsql") {
			continue
		}
		for _, f := range p.code {
			for _, spec := range f.Imports {
				if path := unquote(spec.Path.Value); strings.HasPrefix(path, "github.com/jackc/") {
					findings = append(findings, f.path+" imports "+path)
				}
			}
		}
	}
	forbid(t, "imports of PostgreSQL's client outside of db/engine/pg", findings)
}

// The client is a module of its own: who builds it needs nothing but the standard library, whose
// packages have no dot in the first part of their path.
func TestTheClientNeedsNothingElse(t *testing.T) {
	var findings []string
	for _, p := range load(t) {
		if p.path != "client" && !strings.HasPrefix(p.path, "client/") {
			continue
		}
		for _, f := range p.code {
			for _, spec := range f.Imports {
				path := unquote(spec.Path.Value)
				first, _, _ := strings.Cut(path, "/")
				ours := first == "gotycoon" && !strings.HasPrefix(path, "gotycoon/client/")
				if ours || strings.Contains(first, ".") {
					findings = append(findings, f.path+" imports "+path)
				}
			}
		}
	}
	forbid(t, "imports that the client's module does not have", findings)
}

// A copy of the client's module brings the licence with it.
func TestTheClientHasTheLicence(t *testing.T) {
	ours, err := os.ReadFile("../../LICENSE")
	require.NoError(t, err)
	its, err := os.ReadFile("../../client/LICENSE")
	require.NoError(t, err)
	require.Equal(t, string(ours), string(its))
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
