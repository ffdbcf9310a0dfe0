package pg_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"gotycoon/db/engine/pg"
)

// A URL that does not mean what it seems to is refused before anybody connects, by a message without
// any part of it: each may be of a password.
func TestCheckURL(t *testing.T) {
	for url, why := range map[string]string{
		"host=h password=GEHEIM dbname=kt":            "is no URL of an engine",
		"host=h password=GEHEIM://":                   "is no URL of an engine",
		"GEHEIM":                                      "is no URL of an engine",
		"redis://h/kt":                                "there is no engine redis://",
		"postgresql://kt:GE@HEIM@127.0.0.1:25/kt":     "%40",
		"postgres://kt:GE@HEIM@127.0.0.1?sslmode=off": "%40",
		"postgres://kt:GE/HEIM@127.0.0.1/kt":          "%2F",
		"postgres://kt:12/GEHEIM@127.0.0.1/kt":        "%2F",
		"postgres://h/kt?password=1&GEHEIM":           "%26",
		"postgres://h/kt?password=1=&GE=HEIM=GEHEIM":  "%26",
		"postgres://kt:1%GEHEIM@127.0.0.1:25/kt":      "percent-encoded",
		"postgres://kt:GEHEIM@h/kt?SSLMODE=require":   "small letters",
		"postgres://kt:GEHEIM@h/kt?ssl_mode=require":  "begins with ssl and is none of ssl sslmode",
		"postgres://kt:GEHEIM@h/kt?pool_min_conns=50": "-engine-lanes",
		"postgres://h/kt?sslmode=require&sslmode=a":   "a parameter twice",
		"postgres://kt:GEHEIM@h/kt?sslrootcert=a.pem": "no effect without sslmode",
		"postgres://h/kt?sslrootcert=a&sslmode=":      "no effect without sslmode",
		"postgres://h/kt?sslrootcert=a&ssl=false":     "no effect without sslmode",
		"postgres://h/kt?sslmode=prefer&sslrootcert=": "no effect without sslmode",
	} {
		_, err := pg.ReadStatus(t.Context(), url)
		require.ErrorContains(t, err, why, url)
		require.NotRegexp(t, "GE|HEIM", err.Error(), url)
		_, err = pg.Open(t.Context(), url, pg.Options{})
		require.ErrorContains(t, err, why, url)
	}
	for _, url := range []string{
		"postgres://kt:a%40b@h1:5432,h2/kt?options=-c%20a%3D@&passfile=/a@b", "postgres://?service=kt", "postgresql:///kt?host=/run", "postgres://kt@[::1]/kt",
		"postgres://kt:a?b#c@h/kt", "postgres://h/kt?sslmode=verify-full&sslrootcert=a.pem&statement_timeout=5s&x.y=1", "postgres://h/kt?service=kt&sslrootcert=a.pem",
		"postgres://h/kt?sslrootcert=system", "postgres://h/kt?sslnegotiation=direct&sslrootcert=a.pem", "postgres://h/kt?ssl=true&sslrootcert=a.pem",
	} {
		require.NoError(t, pg.CheckURL(url), url)
	}
}
