package remote_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"gotycoon/tools/remote"
)

func TestCompletion(t *testing.T) {
	clear(t)
	succeed(t, "", "setbulk", "japan", "1", "java", "2", "a b", "3", "a c", "4", "z\xff", "5")
	succeed(t, "", "set", "-db", "tree", "tea", "green")
	complete := remote.CompletingShell(t, port)
	for _, row := range []struct {
		line, want string
		choices    []string
	}{
		{"getb", "getbulk ", []string{"getbulk"}},
		{"ge", "get", []string{"get", "getbulk"}},
		{"us", "use ", []string{"use"}},
		{"nothing like it", "nothing like it", nil},
		{"help to", "help to", []string{"top", "touch"}},
		{"view j", "view json ", []string{"json"}},
		{"use t", "use tree ", []string{"tree"}},
		{"list -db tr", "list -db tree ", []string{"tree"}},
		{"get -j", "get -json ", []string{"-json"}},
		{"get ja", "get ja", []string{"japan", "java"}},
		{"get jap", "get japan ", []string{"japan"}},
		{"get -db tree te", "get -db tree tea ", []string{"tea"}},
		{"get ", "get ", nil},
		{"get a", `get "a `, []string{"a b", "a c"}},
		{`get "a b`, `get "a b" `, []string{"a b"}},
		{"get z", `get "z\xff" `, []string{"z\xff"}},
	} {
		longer, choices := complete(row.line)
		require.Equal(t, row.want, longer, row.line)
		require.Equal(t, row.choices, choices, row.line)
	}
	_, choices := complete("")
	require.Contains(t, choices, "exit")
	require.Contains(t, choices, "set")
}
