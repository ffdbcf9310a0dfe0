// Package version says what was built: the only place that knows the version. Everything that tells
// a version asks this package: --version of all programs, report, metrics, console and /version of
// a server. The Makefile reads the number here for the names of packages.
//
// The number is that of the next release until it is released; between two releases the revision
// says which state was built. The revision comes from the first of these that knows it:
//
//	the linker     make build and the packages: -X gotycoon/internal/version.revision=...
//	the archive    a source tarball that "git archive" made: see revision.txt
//	the toolchain  go build and go install in a clone
package version

import (
	_ "embed"
	"fmt"
	"runtime"
	"runtime/debug"
	"strings"
)

// number is the version without a "v". The packages of another version are built with
// -X gotycoon/internal/version.number=...
var number = "0.2.0"

// revision is what the linker was told, with "+dirty" behind it when files had been changed.
var revision = ""

// archived holds the revision, and the time of its commit, in a tarball of "git archive", which
// fills the placeholders in (export-subst in .gitattributes). In a clone the placeholders stand.
//
//go:embed revision.txt
var archived string

// Build is what a program was built from, and for.
type Build struct {
	Version  string // such as 0.2.0
	Revision string // of the repository, "+dirty" behind it if files were changed; or unknown
	Go       string // such as go1.26.8
	System   string // such as linux/amd64
}

// Current returns what this program was built from.
func Current() Build {
	b := Build{Version: number, Revision: "unknown", Go: runtime.Version(), System: runtime.GOOS + "/" + runtime.GOARCH}
	for _, known := range []string{revision, ofArchive(archived), ofToolchain(debug.ReadBuildInfo())} {
		if known != "" {
			b.Revision = known
			break
		}
	}
	return b
}

// String returns the line that --version prints.
func (b Build) String() string {
	return fmt.Sprintf("gotycoon %s (revision %s, %s, %s)", b.Version, b.Revision, b.Go, b.System)
}

// ofArchive returns the revision in revision.txt; "" while it holds placeholders.
func ofArchive(text string) string {
	if strings.HasPrefix(text, "$Format") {
		return ""
	}
	revision, _, _ := strings.Cut(strings.TrimSpace(text), " ")
	return revision
}

// ofToolchain returns the revision that the go command has found; "" with -buildvcs=false, outside
// of a clone, and in tests.
func ofToolchain(info *debug.BuildInfo, ok bool) string {
	if !ok {
		return ""
	}
	settings := map[string]string{}
	for _, s := range info.Settings {
		settings[s.Key] = s.Value
	}
	revision := settings["vcs.revision"]
	if revision != "" && settings["vcs.modified"] == "true" {
		revision += "+dirty"
	}
	return revision
}
