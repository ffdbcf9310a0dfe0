package pg

import (
	"errors"
	"fmt"
	"regexp"
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
	if where, _, _ := strings.Cut(rest, "?"); strings.Contains(where, "@") {
		return errors.New("the URL has an @ too many, or a / before it: in a user's name, a password and a database's name write %40 for @, and %2F for /")
	}
	return nil
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
