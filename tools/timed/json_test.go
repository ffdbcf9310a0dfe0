package timed_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestOutputForPrograms(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a.kct")
	succeed(t, "create", path)
	succeed(t, "set", path, "binary", "\xff\x01")
	succeed(t, "set", "-xt", "1000", path, "mortal", "text")
	seconds, size := regexp.MustCompile(`\b1[789]\d{8}\b`), regexp.MustCompile(`"size":\d{5}\b`) // which depends on what was merged
	for want, args := range map[string][]string{
		`{"key":"binary"}` + "\n" + `{"key":"mortal"}` + "\n":                                                   {"list", "-json", path},
		`{"key":"binary","value_base64":"/wE="}` + "\n" + `{"key":"mortal","value":"text","xt":SECONDS}` + "\n": {"list", "-json", "-pv", "-pt", path},
		`{"key":"62696E617279","value":"FF01"}` + "\n":                                                          {"get", "-json", "-px", "-sx", path, "62696E617279"},
		`{"key":"mortal","value":"text","xt":SECONDS}` + "\n":                                                   {"get", "-json", path, "mortal"},
		`{"count":2,"size":SIZE}` + "\n":                                                                        {"inform", "-json", path},
	} {
		got := seconds.ReplaceAllString(succeed(t, args...), "SECONDS")
		require.Equal(t, want, size.ReplaceAllString(got, `"size":SIZE`), "%q", args)
	}
	require.Regexp(t, `^\{"bytes":\d+,"checksum":"matches","closed":"yes",.*"findings":0,.*"records":2,.*\}\n$`, succeed(t, "verify", "-json", path))
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "00000012.ktss"), []byte("KTSS\n\x00"+strings.Repeat("\x00", 27)+"\x07"), 0o600))
	require.Equal(t, `{"count":0,"db":12,"size":7,"ts":0}`+"\n", succeed(t, "bgsinform", "-json", dir))
}
