package tutorial

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"gotycoon/db/engine/pg/pgtest"
)

// postgres is the server of this package.
var postgres pgtest.Shared

const root = "../.."

// engineURL stands in pages for that of a PostgreSQL of the tests.
const engineURL = "postgres://kt@localhost/kt"

func TestMain(m *testing.M) { os.Exit(postgres.Main(m)) }

func readme(t *testing.T) string {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(root, "README.md"))
	require.NoError(t, err)
	return string(data)
}

// TestTutorial runs everything that needs the commands of this module.
func TestTutorial(t *testing.T) {
	p := build(t)
	for name, run := range map[string]func(*testing.T, programs){
		"readme": typeReadme, "published": typePublished, "options": compareOptions, "pages": typePages,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			run(t, p)
		})
	}
}

// typeReadme types what README.md shows.
func typeReadme(t *testing.T, p programs) {
	steps := parse(readme(t))
	require.Greater(t, len(steps), 5, "the first steps were not found")
	s := newShell(t, p)
	for _, st := range steps {
		s.play(t, st, fits)
	}
}

// typePages types what each page of docs shows, in a directory of its own.
func typePages(t *testing.T, p programs) {
	pages, err := filepath.Glob(filepath.Join(root, "docs", "*.md"))
	require.NoError(t, err)
	require.NotEmpty(t, pages)
	for _, page := range pages {
		t.Run(filepath.Base(page), func(t *testing.T) {
			t.Parallel()
			text, err := os.ReadFile(page)
			require.NoError(t, err)
			s := newShell(t, p)
			if bytes.Contains(text, []byte(engineURL)) {
				text = bytes.ReplaceAll(text, []byte(engineURL), []byte(postgres.URL(t)))
			}
			for _, st := range parse(string(text)) {
				s.play(t, st, fits)
			}
		})
	}
}
