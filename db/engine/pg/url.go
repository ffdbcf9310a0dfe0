package pg

import (
	"errors"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5/pgxpool"
)

// CheckURL finds a URL that is none of an engine, or means something else than it seems to. Its
// errors have no part of the URL: any may be of a password.
//
// As libpq does, pgx takes what is before the first @ for the user and the password, unless a / is
// before that. Of a password with one of these, the rest would be the name of a host or of a
// database, which other errors show.
func CheckURL(url string) error {
	scheme, rest, is := strings.Cut(url, "://")
	switch {
	case !is || !regexp.MustCompile("^[a-z]+$").MatchString(scheme):
		return errors.New("this is no URL of an engine, such as postgres://USER@HOST/DATABASE")
	case scheme != "postgres" && scheme != "postgresql":
		return fmt.Errorf("there is no engine %s://, only postgres://", scheme)
	}
	if i := strings.IndexAny(rest, "@/"); i >= 0 && rest[i] == '@' {
		rest = rest[i+1:]
	}
	where, params, _ := strings.Cut(rest, "?")
	if strings.Contains(where, "@") {
		return errors.New("the URL has an @ too many, or a / before it: in a user's name, a password and a database's name write %40 for @, and %2F for /")
	}
	return checkParams(params)
}

// sslParams are the parameters for who connects whose names begin with ssl. PostgreSQL is told
// those that pgx does not know, as settings of the session.
const sslParams = "ssl sslmode sslkey sslcert sslcertmode sslrootcert sslnegotiation sslpassword sslsni"

// checkParams finds parameters that would have no effect. With sslMode or SSLMODE the connection
// would not be encrypted, and PostgreSQL would refuse the name after it has been sent the password.
func checkParams(params string) error {
	values, isName := map[string]string{}, regexp.MustCompile("^[a-z][a-z0-9_.]*$")
	for param := range strings.SplitSeq(params, "&") {
		name, value, _ := strings.Cut(param, "=")
		_, twice := values[name]
		switch {
		case param == "":
			continue
		case !isName.MatchString(name):
			return errors.New("the URL has a parameter whose name is none: names are in small letters, such as sslmode; write %26 for & in a value")
		case strings.HasPrefix(name, "ssl") && !slices.Contains(strings.Fields(sslParams), name):
			return errors.New("the URL has a parameter that begins with ssl and is none of " + sslParams)
		case strings.HasPrefix(name, "pool_"):
			return errors.New("the URL has a parameter that begins with pool_: -engine-lanes and -engine-readers say how many connections a server makes")
		case twice:
			return errors.New("the URL has a parameter twice, and only one of them would count")
		}
		values[name] = value
	}
	root, rooted := values["sslrootcert"]
	if rooted && root != "system" && values["sslnegotiation"] != "direct" && !checks(values) {
		return errors.New("sslrootcert in the URL has no effect without sslmode=verify-full, which checks whom the server speaks to")
	}
	return nil
}

// checks reports whether the parameters of a URL, or what stands in for them, may ask for a
// connection whose other end is checked.
func checks(values map[string]string) bool {
	mode, given := values["sslmode"]
	if ssl, is := values["ssl"]; is && !given {
		return ssl == "true"
	}
	if !given {
		_, service := values["service"]
		return service || os.Getenv("PGSERVICE") != "" || os.Getenv("PGSSLMODE") != ""
	}
	return !slices.Contains([]string{"", "disable", "allow", "prefer"}, mode)
}

// parse reads a URL. pgx's own errors quote it, do not find every password in it, and quote what is
// behind a & once more.
func parse(url string) (*pgxpool.Config, error) {
	if err := CheckURL(url); err != nil {
		return nil, err
	}
	config, err := pgxpool.ParseConfig(url)
	if err == nil {
		return config, nil
	}
	why := err.Error()
	why = why[strings.LastIndex(why, "`")+1:]
	if before, _, quotes := strings.Cut(why, `: "`); quotes {
		why = before + "): write %26 for & in a value, and %3D for ="
	}
	return nil, errors.New("the engine's URL" + why)
}
