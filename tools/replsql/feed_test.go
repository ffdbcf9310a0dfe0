package replsql_test

import (
	"encoding/base64"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func set(stamp, db int, key, value string) string {
	stored := append([]byte{0xFF, 0xFF, 0xFF, 0xFF, 0xFF}, value...)
	return fmt.Sprintf("%d\t1\t%d\tset\t%s\t%s\n", stamp, db, b64([]byte(key)), b64(stored))
}

func b64(b []byte) string { return base64.StdEncoding.EncodeToString(b) }

const everything = "SELECT dbid, key, value, expires, stamp, sid FROM ktrecords ORDER BY dbid, key"

func TestKinds(t *testing.T) {
	eachTarget(t, func(t *testing.T, g target) {
		in := set(1, 0, "a", "one") + set(2, 0, "b", "two") + set(3, 1, "a", "other") + set(4, 0, "a", "three") +
			"5\t7\t0\tremove\t" + b64([]byte("b")) + "\n" + set(6, 2, "x", "y") + "7\t1\t2\tclear\n" + set(8, 0, "", "") +
			"9\t1\t0\tset\t" + b64([]byte("short")) + "\t" + b64([]byte{0, 0, 0, 0, 9, 'v'}) + "\n" +
			"10\t1\t0\tunknown\toQ==\n" + "11\t1\t5\tset\tcGVyc2lzdGVudA==\tcHY=\n" + set(12, 0, "cut off", "")[:20]
		exit, _, stderr := run(t, in, "-persistent", "5", "-batch", "3", g.name)
		require.Zero(t, exit, stderr)
		require.Contains(t, stderr, "ts=10 is of a kind that is not known")
		require.Contains(t, stderr, "the last line was cut off")
		want := []string{"0   <nil> 8 1", "0 a three <nil> 4 1", "0 short v 9 9 1", "1 a other <nil> 3 1", "5 persistent pv <nil> 11 1"}
		require.Equal(t, want, g.query(t, everything))

		exit, stdout, stderr := run(t, "", "position", g.name)
		require.Zero(t, exit, stderr)
		require.Equal(t, "11\n", stdout)
	})
}

// TestOnce brings in lines that have been brought in before.
func TestOnce(t *testing.T) {
	eachTarget(t, func(t *testing.T, g target) {
		var in strings.Builder
		for i := range 500 {
			in.WriteString(set(i+1, 0, fmt.Sprintf("k%03d", i%100), fmt.Sprint(i)))
		}
		exit, _, stderr := run(t, in.String(), g.name)
		require.Zero(t, exit, stderr)
		_ = g.query(t, "UPDATE ktrecords SET value = 'changed by hand' WHERE sid = 1 RETURNING 1")
		exit, _, stderr = run(t, in.String()+set(501, 0, "k000", "new"), g.name)
		require.Zero(t, exit, stderr)
		require.Equal(t, []string{"changed by hand 99", "new 1"},
			g.query(t, "SELECT CAST(value AS TEXT), count(*) FROM (SELECT CASE WHEN stamp = 501 THEN 'new' ELSE 'changed by hand' END AS value FROM ktrecords) AS r GROUP BY 1 ORDER BY 1"))
		require.Len(t, g.query(t, "SELECT 1 FROM ktrecords WHERE value = 'changed by hand'"), 99)
		require.Equal(t, []string{"main 501"}, g.query(t, "SELECT feed, stamp FROM ktrecords_position"))
	})
}

// TestRefused keeps what comes before a line that is wrong, and nothing behind it.
func TestRefused(t *testing.T) {
	eachTarget(t, func(t *testing.T, g target) {
		exit, _, stderr := run(t, set(1, 0, "a", "b")+"nonsense\n"+set(2, 0, "c", "d"), "-table", "other", "-feed", "it's", g.name)
		require.Equal(t, 1, exit)
		require.Contains(t, stderr, "line 2 is no line of ktremotemgr slave")
		require.Equal(t, []string{"1"}, g.query(t, "SELECT stamp FROM other"))
		exit, stdout, _ := run(t, "", "position", "-table", "other", "-feed", "it's", g.name)
		require.Zero(t, exit)
		require.Equal(t, "1\n", stdout)
	})
}

func TestDatabases(t *testing.T) {
	eachTarget(t, func(t *testing.T, g target) {
		exit, _, stderr := run(t, set(1, 0, "a", "b")+set(2, 3, "c", "d")+set(3, 4, "e", "f"), "-db", "0,3", g.name)
		require.Zero(t, exit, stderr)
		require.Equal(t, []string{"1", "2"}, g.query(t, "SELECT stamp FROM ktrecords ORDER BY stamp"))
		_, stdout, _ := run(t, "", "position", g.name)
		require.Equal(t, "3\n", stdout)
	})
}

func TestUsage(t *testing.T) {
	for _, args := range [][]string{
		{}, {"file.db"}, {"sqlite:a", "sqlite:b"}, {"-table", "a b", "sqlite:x"}, {"-batch", "0", "sqlite:x"}, {"-db", "x", "sqlite:x"},
		{"-nonsense"}, {"sqlite:/nowhere/x.db"}, {"postgres://tester@/x?host=/nowhere"},
	} {
		exit, stdout, stderr := run(t, "", args...)
		require.Equal(t, 1, exit, args)
		require.Empty(t, stdout)
		require.True(t, strings.HasPrefix(stderr, "ktreplsql: "), stderr)
	}
	exit, stdout, _ := run(t, "", "-h")
	require.Zero(t, exit)
	require.Contains(t, stdout, "-persistent")
}
