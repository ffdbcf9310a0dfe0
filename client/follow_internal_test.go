package client

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestReachOfAnOriginal judges by the files of a log, of which each holds a hundred stamps: file 7
// ends with the update 700.
func TestReachOfAnOriginal(t *testing.T) {
	files := func(first, last uint64) (list []LogFile) {
		for n := first; n <= last; n++ {
			list = append(list, LogFile{Path: fmt.Sprintf("ulog/%010d.ulog", n), Last: n * 100})
		}
		return list
	}
	for _, row := range []struct {
		first, last, after uint64
		want               Reach
	}{
		{1, 3, 0, Reach{Oldest: 1, File: 1}},
		{1, 3, 250, Reach{Oldest: 1, File: 3}},
		{1, 3, 300, Reach{Oldest: 1, File: 3}},
		{5, 7, 650, Reach{Oldest: 5, File: 7}},
		{5, 7, 450, Reach{Oldest: 5, File: 5, Gap: true}}, // file 4 may have had later updates
		{7, 7, 650, Reach{Oldest: 7, File: 7, Gap: true}},
		{7, 7, 700, Reach{Oldest: 7, File: 7}},
		{1, 0, 700, Reach{}},
	} {
		require.Equal(t, row.want, reachOf(files(row.first, row.last), row.after), "%+v", row)
	}
	require.Equal(t, Reach{Gap: true}, reachOf([]LogFile{{Path: "other"}}, 1))
}
