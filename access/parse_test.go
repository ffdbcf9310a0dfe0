package access

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

const (
	someHash  = "$2y$05$abcdefghijklmnopqrstuuKkj3EXcLzYk2bQyJhZ6mA3hXz9aQ0Vm"
	someToken = "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08" // of "test"
)

func TestParse(t *testing.T) {
	table, err := parse([]byte(strings.Join([]string{
		"# who may do what",
		"",
		"anna:" + someHash + "   # as htpasswd writes it",
		"token ci " + someToken,
		"cert node2 CN of two words\r",
		"cert node2 node2.example.com",
		"allow anna read,write db=orders.kct,1 prefix=eu%3A%20 from=10.0.0.0/8,local,2001:db8::/32",
		"allow ci admin",
		"allow node2 replicate service=lock,quota from=10.1.2.3",
		"allow anyone read from=127.0.0.1",
	}, "\n")))
	require.NoError(t, err)
	require.Equal(t, "1 users with a password, 1 tokens, 2 certificates, 4 rules", table.summary())
	anna := table.names["anna"].rules[0]
	require.Equal(t, Read|Write, anna.rights)
	require.Equal(t, []string{"orders.kct", "1"}, anna.databases)
	require.Equal(t, "eu: ", string(anna.prefix))
	require.True(t, anna.local)
	require.Len(t, anna.from, 2)
	require.False(t, anna.allServices || anna.allDatabases)
	require.Equal(t, allRights, table.names["ci"].rules[0].rights)
	require.True(t, table.names["ci"].rules[0].allServices)
	node := table.names["node2"].rules[0]
	require.Equal(t, []string{"lock", "quota"}, node.services)
	require.False(t, node.allDatabases)
	require.Contains(t, table.certs, "CN of two words")
	require.Len(t, table.anyone, 1)
}

func TestParseErrors(t *testing.T) {
	user := "anna:" + someHash + "\n"
	for text, want := range map[string]string{
		"anna":                            "line 1: a line is",
		"\n\nallow anna":                  "line 3: a line is",
		"anna:secret":                     "not one of bcrypt",
		"anna:$apr1$x$y":                  "not one of bcrypt",
		"anna:" + someHash + "x":          "not one of bcrypt",
		user + user:                       "two passwords",
		"anna:$2y$17" + someHash[6:]:      "takes seconds",
		":" + someHash:                    "a name has 1 to",
		"anyone:" + someHash:              "the name is taken",
		"token ci abc":                    "not a SHA-256",
		"token ci " + someToken[1:] + "x": "not a SHA-256",
		"token ci " + someToken + "00":    "not a SHA-256",
		"token a " + someToken + "\ntoken b " + someToken: "same token",
		"allow anna read":                              `"anna" is allowed something, but has no password`,
		user + "allow anna reed":                       `"reed" is no right`,
		user + "allow anna read db=":                   "NAME=VALUE",
		user + "allow anna read db=a,,b":               "a name is missing",
		user + "allow anna read db=%zz":                "db=",
		user + "allow anna read prefix=%":              "prefix=",
		user + "allow anna read prefix=a prefix=b":     "comes twice",
		user + "allow anna read service=mail":          "no service",
		user + "allow anna read prefix=a service=lock": "prefix= is about databases",
		user + "allow anna read from=10.0.0.1/8":       "is 10.0.0.0/8",
		user + "allow anna read from=office":           "no network",
		user + "allow anna read until=monday":          "no limit",
		user + "allow anna read db=65534":              "service= for who uses the services",
		user + "allow anna admin db=0,65534":           "service= for who uses the services",
		"an\x00na":                                     "not UTF-8",
		"\xff":                                         "not UTF-8",
	} {
		_, err := parse([]byte(text))
		require.ErrorContains(t, err, want, "%q", text)
		require.NotContains(t, err.Error(), someHash)
	}
	_, err := parse(make([]byte, maxFile+1))
	require.ErrorContains(t, err, "at most")
}

func FuzzParse(f *testing.F) {
	f.Add("anna:" + someHash + "\nallow anna read,write db=a prefix=%20 from=10.0.0.0/8 # x")
	f.Add("token a " + someToken + "\ncert a b c\nallow a admin service=lock")
	f.Add("allow anyone read from=local,::1/128\r\n\n#")
	f.Fuzz(func(t *testing.T, text string) {
		table, err := parse([]byte(text))
		if err != nil {
			return
		}
		for _, p := range table.names {
			require.True(t, p.known)
			for _, r := range p.rules {
				require.NotZero(t, r.rights)
			}
		}
		for _, r := range table.anyone {
			require.NotZero(t, r.rights)
		}
		_ = table.summary()
	})
}

func FuzzAuthorization(f *testing.F) {
	for _, header := range []string{"Basic YW5uYTpzZWNyZXQ=", "basic  YW5uYTpzZWNyZXQ", "Bearer abc", "Basic", "", "Digest x", "Basic Og==", "Bearer "} {
		f.Add([]byte(header))
	}
	f.Fuzz(func(t *testing.T, header []byte) {
		user, secret, kind := parseAuthorization(header)
		switch kind {
		case malformed:
			require.Empty(t, user)
			require.Nil(t, secret)
		case basic:
			require.NotContains(t, user, ":")
		case bearer:
			require.NotEmpty(t, secret)
		}
	})
}

func TestAuthorization(t *testing.T) {
	for _, row := range []struct {
		header, user, secret string
		kind                 scheme
	}{
		{"Basic YW5uYTpzZWNyZXQ=", "anna", "secret", basic},
		{" bAsIc   YW5uYTpzZWNyZXQ ", "anna", "secret", basic},
		{"Basic YW5uYTpzZTpjcmV0", "anna", "se:cret", basic},
		{"Basic Og==", "", "", basic},
		{"Basic YW5uYQ==", "", "", malformed}, // no colon
		{"Basic %%%", "", "", malformed},
		{"Bearer abc def", "", "abc def", bearer},
		{"BEARER abc", "", "abc", bearer},
		{"Bearer", "", "", malformed},
		{"Negotiate abc", "", "", malformed},
	} {
		user, secret, kind := parseAuthorization([]byte(row.header))
		require.Equal(t, row.kind, kind, row.header)
		require.Equal(t, row.user, user, row.header)
		require.Equal(t, row.secret, string(secret), row.header)
	}
}
