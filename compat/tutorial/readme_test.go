package tutorial

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"gotycoon/compat/ktproc"
)

const root = "../.."

func readme(t *testing.T) string {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(root, "README.md"))
	require.NoError(t, err)
	return string(data)
}

// TestTutorial runs everything that needs the commands of this module.
func TestTutorial(t *testing.T) {
	p := programs{server: ktproc.Build(t, "ktserver"), manager: ktproc.Build(t, "ktremotemgr")}
	for name, run := range map[string]func(*testing.T, programs){
		"readme": typeReadme, "published": typePublished, "options": compareOptions,
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
	require.Greater(t, len(steps), 50, "the tutorial was not found")
	s := newShell(t, p)
	// The file of the original that README.md speaks of; its first bytes are what tells it.
	require.NoError(t, os.WriteFile(filepath.Join(s.dir, "old.kch"), []byte("KC\n\x00\x10\x0e\x06\xb4\x30\x06"), 0o644))
	for _, st := range steps {
		s.play(t, st, fits)
	}
}
