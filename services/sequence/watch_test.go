package sequence

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestQuotasAreListed(t *testing.T) {
	d := openDB(t, t.TempDir())
	first, err := NewQuotaServer(QuotaOptions{DB: d, Limit: 100})
	require.NoError(t, err)
	all, err := first.List(10)
	require.NoError(t, err)
	require.Equal(t, []Quota{{Remaining: 100, Open: true}}, all)
	l := listen(t)
	first.Start(l)
	c := newClient(t, l.Addr().String())
	for i := range 5 {
		c.is(fmt.Sprintf("/increase?amt=10&name=n%d", i), "10")
		for j := range 3 {
			c.is(fmt.Sprintf("/apply?amt=1&name=n%d&id=x%d", i, j), fmt.Sprintf("%d %d", j+1, 9-j))
		}
	}
	c.is("/empty?name=n4", "0")
	require.NoError(t, first.Close())

	second, err := NewQuotaServer(QuotaOptions{DB: d, Limit: 100}) // which has not been asked for any of them
	require.NoError(t, err)
	defer func() { require.NoError(t, second.Close()) }()
	all, err = second.List(10)
	require.NoError(t, err)
	require.Equal(t, []Quota{
		{"", 100, 0, true}, {"n0", 7, 3, true}, {"n1", 7, 3, true}, {"n2", 7, 3, true}, {"n3", 7, 3, true}, {"n4", 0, 3, false},
	}, all)
	all, err = second.List(2)
	require.NoError(t, err)
	require.Len(t, all, 3, "the one without a name is there too")
}

func TestSequencesAreListed(t *testing.T) {
	d := openDB(t, t.TempDir())
	s, err := NewSequenceServer(SequenceOptions{DB: d, ServerNo: 7})
	require.NoError(t, err)
	l := listen(t)
	s.Start(l)
	c := newClient(t, l.Addr().String())
	for _, path := range []string{"/fetch", "/fetch?name=b", "/fetch?name=a"} {
		status, _ := c.get(path)
		require.Equal(t, 200, status)
	}
	all, err := s.List(10)
	require.NoError(t, err)
	require.Len(t, all, 3)
	require.Equal(t, []string{"", "a", "b"}, []string{all[0].Name, all[1].Name, all[2].Name})
	require.WithinDuration(t, time.Now(), all[1].Bound, time.Minute)
	require.NoError(t, s.Close())
}
