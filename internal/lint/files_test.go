package lint

import (
	"bytes"
	"encoding/json"
	"go/ast"
	"go/importer"
	"go/token"
	"go/types"
	"io"
	"os"
	"os/exec"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
)

// layered are the packages whose files stand above each other: the files of a package form no cycle,
// so the package can be read from the top file down, or from the bottom up.
func layered() []string {
	return []string{
		"db",
		"db/filestore",
		"db/filestore/paging",
		"db/filestore/run",
		"db/memstore",
		"db/memstore/slab",
		"httpapi",
		"memcache",
		"replication",
		"script",
		"server",
		"services/lock",
		"tools/remote",
		"ulog",
	}
}

// TestFilesOfPackagesAreLayered looks for cycles among files. A file has an arrow to another one if it
// uses a function, method, type, variable or constant that is declared there; fields do not count.
func TestFilesOfPackagesAreLayered(t *testing.T) {
	exports := exportData(t, layered())
	for _, p := range load(t) {
		if slices.Contains(layered(), p.path) {
			require.Empty(t, cycle(fileArrows(t, p, exports)), "files of %s that need each other", p.path)
		}
	}
}

// exportData returns where the compiler has put what packages export, by import path.
func exportData(t *testing.T, packages []string) map[string]string {
	t.Helper()
	args := []string{"list", "-export", "-deps", "-json=ImportPath,Export"}
	for _, p := range packages {
		args = append(args, "./"+p)
	}
	cmd := exec.Command("go", args...)
	cmd.Dir = root
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	require.NoError(t, err)
	exports := map[string]string{}
	for dec := json.NewDecoder(bytes.NewReader(out)); dec.More(); {
		var p struct{ ImportPath, Export string }
		require.NoError(t, dec.Decode(&p))
		exports[p.ImportPath] = p.Export
	}
	return exports
}

// fileArrows returns which files of a package use which others.
func fileArrows(t *testing.T, p *pkg, exports map[string]string) map[string][]string {
	t.Helper()
	fset := token.NewFileSet()
	var files []*ast.File
	for _, f := range p.code {
		if f.buildable() {
			files = append(files, reparse(t, fset, f))
		}
	}
	info := &types.Info{Uses: map[*ast.Ident]types.Object{}}
	conf := types.Config{Importer: importer.ForCompiler(fset, "gc", func(path string) (io.ReadCloser, error) {
		return os.Open(exports[path])
	})}
	checked, err := conf.Check(module+p.path, fset, files, info)
	require.NoError(t, err)
	arrows := map[string][]string{}
	for id, o := range info.Uses {
		if v, ok := o.(*types.Var); o.Pkg() != checked || ok && (v.IsField() || o.Parent() != checked.Scope()) {
			continue
		}
		from, to := fset.Position(id.Pos()).Filename, fset.Position(o.Pos()).Filename
		if from != to && !slices.Contains(arrows[from], to) {
			arrows[from] = append(arrows[from], to)
		}
	}
	return arrows
}

// cycle returns files that use each other in a ring, nil where there are none.
func cycle(arrows map[string][]string) []string {
	const walking, done = 1, 2
	state := map[string]int{}
	var way []string
	var walk func(string) []string
	walk = func(f string) []string {
		state[f], way = walking, append(way, f)
		for _, g := range arrows[f] {
			if state[g] == walking {
				return append(way[slices.Index(way, g):], g)
			}
			if state[g] == 0 {
				if ring := walk(g); ring != nil {
					return ring
				}
			}
		}
		state[f], way = done, way[:len(way)-1]
		return nil
	}
	for f := range arrows {
		if state[f] == 0 {
			if ring := walk(f); ring != nil {
				return ring
			}
		}
	}
	return nil
}

func TestCyclesAreFound(t *testing.T) {
	require.Nil(t, cycle(map[string][]string{"a": {"b", "c"}, "b": {"c"}}))
	require.Len(t, cycle(map[string][]string{"a": {"b"}, "b": {"c"}, "c": {"b"}}), 3)
}
