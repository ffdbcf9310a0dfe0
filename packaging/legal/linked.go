package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// ours is the import path of this repository, and begins those of the modules in its folders.
const ours = "gotycoon"

func isOurs(path string) bool { return path == ours || strings.HasPrefix(path, ours+"/") }

// standard is the path of the component that the go command brings along.
const standard = "std"

// component is a module that is linked into a program.
type component struct {
	path, version string // as in go.mod; the standard library is std and has no version
	texts         []text // what must be shown to whoever gets the program
}

// title names the component to a reader.
func (c component) title() string {
	if c.path == standard {
		return "the standard library of Go"
	}
	return c.path + " " + c.version
}

// listed is what "go list" tells of a package.
type listed struct {
	ImportPath, Dir string
	Standard        bool
	Module          *struct{ Path, Version, Dir string }
}

// linked returns the modules of all programs on these architectures, in the order of their paths.
// They are those of the packages that the programs import: a module that only tests need is none.
func linked(archs ...string) ([]component, error) {
	root, err := goOutput("", "env", "GOROOT")
	if err != nil {
		return nil, err
	}
	root = strings.TrimSpace(root)
	found := map[string]component{}
	texts := map[string]map[string]text{} // by component, then by file
	for _, module := range []string{".", "tools/replsql"} {
		for _, arch := range archs {
			packages, err := list(module, arch)
			if err != nil {
				return nil, err
			}
			for _, p := range packages {
				c, top, bottom := component{path: standard}, root, root
				switch {
				case p.Standard:
				case isOurs(p.Module.Path):
					continue
				default:
					c, top, bottom = component{path: p.Module.Path, version: p.Module.Version}, p.Module.Dir, p.Dir
				}
				if known, ok := found[c.path]; !ok {
					found[c.path], texts[c.path] = c, map[string]text{}
				} else if known.version != c.version {
					return nil, fmt.Errorf("%s is linked as %s and as %s: let go.mod and tools/replsql/go.mod name the same version",
						c.path, known.version, c.version)
				}
				if err := readTexts(c.path, top, bottom, texts[c.path]); err != nil {
					return nil, err
				}
			}
		}
	}
	var all []component
	for _, path := range slices.Sorted(maps.Keys(found)) {
		c := found[path]
		for _, file := range slices.Sorted(maps.Keys(texts[path])) {
			c.texts = append(c.texts, texts[path][file])
		}
		if len(c.licences()) == 0 {
			return nil, fmt.Errorf("%s: no licence was found: without one nobody may ship it", path)
		}
		all = append(all, c)
	}
	return all, nil
}

// list returns the packages of the programs of a module, with all that they import.
func list(module, arch string) ([]listed, error) {
	out, err := goOutput(arch, "-C", module, "list", "-deps", "-json=ImportPath,Dir,Standard,Module", "./cmd/...")
	if err != nil {
		return nil, err
	}
	var all []listed
	for d := json.NewDecoder(strings.NewReader(out)); ; {
		var p listed
		switch err := d.Decode(&p); {
		case errors.Is(err, io.EOF):
			return all, nil
		case err != nil:
			return nil, err
		}
		all = append(all, p)
	}
}

// goOutput runs the go command for Linux, for which packages are made, and returns its output.
func goOutput(arch string, args ...string) (string, error) {
	cmd := exec.Command("go", args...)
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOOS=linux", "GOARCH="+arch)
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("go %s: %w", strings.Join(args, " "), err)
	}
	return string(out), nil
}

// readTexts adds the licence files of the folder bottom and of those above it up to top, the root
// of the component. Code that a module has taken from others often has a licence beside it.
func readTexts(path, top, bottom string, into map[string]text) error {
	for dir := bottom; ; dir = filepath.Dir(dir) {
		entries, err := os.ReadDir(dir)
		if err != nil {
			return err
		}
		for _, e := range entries {
			file, err := filepath.Rel(top, filepath.Join(dir, e.Name()))
			if err != nil {
				return err
			}
			if _, known := into[file]; known || !isLegal(e) || leftOut[path+"/"+file] {
				continue
			}
			body, err := os.ReadFile(filepath.Join(dir, e.Name()))
			if err != nil {
				return err
			}
			if into[file], err = newText(path, file, string(body)); err != nil {
				return err
			}
		}
		if dir == top {
			return nil
		}
	}
}
