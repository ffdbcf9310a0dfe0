package api_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"

	"gotycoon/admin"
	"gotycoon/admin/api"
	"gotycoon/db"
	"gotycoon/db/engine/mem"
	"gotycoon/db/record"
)

// Every page of the console works with every kind of database, also where a kind has no count, no
// order or no file.
func TestPagesOfEveryKindOfDatabase(t *testing.T) {
	dir := t.TempDir()
	var exprs []string
	for _, name := range []string{"-", "+", ":", "*", "%", "*#capcnt=10", "h.kch", "t.kct", "d.kcd", "f.kcf", "x.kcx", "%#rcomp=dec"} {
		if len(name) > 3 && name[1] == '.' {
			name = filepath.Join(dir, name)
		}
		exprs = append(exprs, name)
	}
	c, err := db.Open(exprs, db.Options{})
	require.NoError(t, err)
	defer func() { require.NoError(t, c.Close()) }()
	for _, d := range c.All() {
		require.NoError(t, d.Set(nil, []byte("key"), []byte("value"), record.Never))
	}
	s := serve(t, api.Options{}, func(_ *admin.Options, sources *api.Sources) { sources.Catalog = c })
	status, text := s.ask("GET", "databases", "")
	require.Equal(t, http.StatusOK, status, text)
	var page struct {
		Databases []struct {
			Kind    string
			Records int64
			OnDisk  bool
			File    *struct{}
		}
	}
	require.NoError(t, json.Unmarshal([]byte(text), &page))
	require.Len(t, page.Databases, len(exprs))
	for i, d := range page.Databases {
		require.Equal(t, d.OnDisk, d.File != nil, exprs[i])
		if d.Kind == "text file (.kcx)" {
			require.EqualValues(t, -1, d.Records)
		} else {
			require.EqualValues(t, 1, d.Records, exprs[i])
		}
		for _, path := range []string{"records", "records?prefix=a2V5", "record?key=a2V5"} {
			status, text := s.ask("GET", "databases/"+strconv.Itoa(i)+"/"+path, "")
			require.Less(t, status, http.StatusInternalServerError, "%s %s: %s", exprs[i], path, text)
		}
	}
}

// A database that an engine keeps has no file here, and is not in the memory of this server either.
func TestACheckpointSaysWhoKeepsTheDatabase(t *testing.T) {
	e := mem.New(mem.Options{}).Server("a")
	t.Cleanup(func() { _ = e.Close() })
	for _, of := range []struct {
		exprs   []string
		options db.Options
		want    string
	}{
		{[]string{"one", "two.kct"}, db.Options{Shared: e}, "an engine keeps %s: this server has no file of it to write"},
		{[]string{":", "*"}, db.Options{}, "%s is in memory: there is no file to write"},
	} {
		c, err := db.Open(of.exprs, of.options)
		require.NoError(t, err)
		s := serve(t, api.Options{}, func(_ *admin.Options, sources *api.Sources) { sources.Catalog = c })
		for i, d := range c.All() {
			status, text := s.change("POST", "databases/"+strconv.Itoa(i)+"/checkpoint", "")
			require.Equal(t, http.StatusNotImplemented, status)
			require.Contains(t, text, fmt.Sprintf(of.want, d.Name()))
		}
		require.NoError(t, c.Close())
	}
}
