package remote_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestJSON(t *testing.T) {
	clear(t)
	succeed(t, "", "set", "-db", "tree", "-xt", "-4102444800", "a", "1")
	succeed(t, "", "set", "-db", "tree", "-sx", "62ff", "00")
	succeed(t, "", "set", "-db", "tree", "", "")
	for _, row := range []struct {
		args []string
		want string
	}{
		{at("get", "-db", "tree", "-json", "a"), `{"key":"a","value":"1","xt":4102444800}`},
		{at("get", "-db", "tree", "-json", "-sx", "62ff"), `{"key_base64":"Yv8=","value":"\u0000"}`},
		{at("get", "-db", "tree", "-json", "-px", "a"), `{"key":"61","value":"31","xt":4102444800}`},
		{at("list", "-db", "tree", "-json"), `{"key":""}` + "\n" + `{"key":"a"}` + "\n" + `{"key_base64":"Yv8="}`},
		{at("list", "-db", "tree", "-json", "-pv", "-pt", "-max", "2"),
			`{"key":"","value":""}` + "\n" + `{"key":"a","value":"1","xt":4102444800}`},
		{at("getbulk", "-db", "tree", "-json", "a", "", "none"), `{"key":"","value":""}` + "\n" + `{"key":"a","value":"1"}`},
		{at("getbulk", "-db", "1", "-bin", "-json", "a", "", "none"), `{"key":"a","value":"1"}` + "\n" + `{"key":"","value":""}`},
		{at("match", "-db", "tree", "-json", "a"), `{"key":"a"}`},
		{at("regex", "-db", "tree", "-json", "^a$", "^$"), `{"key":"a"}` + "\n" + `{"key":""}`},
		{at("regex", "-db", "tree", "-json", "none"), ""},
	} {
		r := command(t, "", row.args...)
		require.Zero(t, r.exit, r.stderr)
		require.Equal(t, row.want, strings.TrimSuffix(r.stdout, "\n"), "%v", row.args)
	}
}

// -xt 0 is the original's word for a record that expires at once, whatever it is in package client.
func TestZeroExpiresAtOnce(t *testing.T) {
	succeed(t, "", "set", "-xt", "0", "at once", "1")
	succeed(t, "", "setbulk", "-xt", "0", "at once in bulk", "1")
	succeed(t, "", "setbulk", "-bin", "-xt", "0", "at once in binary", "1")
	for _, key := range []string{"at once", "at once in bulk", "at once in binary"} {
		r := command(t, "", "get", "-pt", key) // it may live to the end of the second
		require.True(t, r.exit != 0 || strings.HasPrefix(r.stdout, "1\t"), r)
	}
}

func TestJSONOfReports(t *testing.T) {
	clear(t)
	var status struct {
		Count int    `json:"count"`
		Path  string `json:"path"`
		Type  int    `json:"type"`
	}
	require.NoError(t, json.Unmarshal([]byte(succeed(t, "", "inform", "-db", "tree", "-st", "-json")), &status))
	require.Equal(t, "tree", status.Path)
	require.Positive(t, status.Type)
	var report map[string]any
	require.NoError(t, json.Unmarshal([]byte(succeed(t, "", "report", "-json")), &report))
	require.Equal(t, "Linux", report["conf_os_name"])
	require.IsType(t, 0.0, report["serv_running_term"])
}

func TestList(t *testing.T) {
	clear(t)
	var pairs []string
	var keys strings.Builder
	for i := range 500 {
		key := string([]byte{'k', byte('a' + i/26), byte('a' + i%26)})
		pairs = append(pairs, key, "v")
		keys.WriteString(key + "\n")
	}
	succeed(t, "", "setbulk", append([]string{"-db", "tree"}, pairs...)...)
	require.Equal(t, keys.String(), succeed(t, "", "list", "-db", "tree"))
	require.Equal(t, "kab\tv\t9223372036854775807\nkac\tv\t9223372036854775807\n",
		succeed(t, "", "list", "-db", "tree", "-pv", "-pt", "-max", "2", "kab"))
	require.Equal(t, "kaa\nkab\n", succeed(t, "", "list", "-db", "tree", "-rm", "-max", "2"))
	require.Equal(t, "kac\n", succeed(t, "", "list", "-db", "tree", "-max", "1"), "no more was removed than was printed")
}

func TestHelp(t *testing.T) {
	for _, args := range [][]string{{"--help"}, {"-help"}, {"help"}, {"-h"}} {
		r := command(t, "", args...)
		require.Zero(t, r.exit)
		require.Contains(t, r.stdout, "\n  ktremotemgr get [option ...] key ")
		require.Empty(t, r.stderr)
	}
	for _, arg := range []string{"--help", "-help", "-h"} {
		r := command(t, "", "get", arg)
		require.Zero(t, r.exit)
		require.Contains(t, r.stdout, "\n  -pz ")
	}
	r := command(t, "", "get", "-port", "x", "k")
	require.Equal(t, 1, r.exit)
	require.Contains(t, r.stderr, "-port")
	require.Empty(t, r.stdout)
}

// Numbers of increments are read by the server.
func TestIncrement(t *testing.T) {
	clear(t)
	require.Equal(t, "1\n", succeed(t, "", "set", "-inci", "n", "1.9"))
	require.Equal(t, "1\n", succeed(t, "", "set", "-inci", "n", "none"))
	require.Equal(t, "0.500000\n", succeed(t, "", "set", "-incd", "-xt", "100", "x", "0.5"))
	require.NotContains(t, succeed(t, "", "get", "-pt", "-px", "x"), "9223372036854775807")
}
