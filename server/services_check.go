package server

import (
	"fmt"
	"math"
	"slices"
	"time"

	"gotycoon/db"
)

// setting is an option of a service that has no effect while the service is off.
type setting struct {
	option string
	given  bool
	wrong  error // the value is one that no service can have
}

// amount is an option for which 0 means the default, or none.
func amount[T ~int | ~int64](option string, value T) setting {
	s := setting{option: option, given: value != 0}
	if value < 0 {
		s.wrong = fmt.Errorf("%s: it cannot be negative", option)
	}
	return s
}

// shortestInterval is the least that yrmcds takes.
const shortestInterval = 10 * time.Second

// interval is an amount of time that is not too short.
func interval(option string, value time.Duration) setting {
	s := amount(option, value)
	if s.given && value < shortestInterval {
		s.wrong = fmt.Errorf("%s: it is at least %v", option, shortestInterval)
	}
	return s
}

// within is an option with a greatest value.
func within(option string, value, most int) setting {
	s := setting{option: option, given: value != 0}
	if value < 0 || value > most {
		s.wrong = fmt.Errorf("%s: %d is not within 0 to %d", option, value, most)
	}
	return s
}

// positive is an option whose value is reported when it is negative.
func positive(option string, value int64) setting {
	s := setting{option: option, given: value != 0}
	if value < 0 {
		s.wrong = fmt.Errorf("%s: %d is negative", option, value)
	}
	return s
}

// check finds values that no service can have, so that the start fails before anything is opened.
func (c *ServicesConfig) check() error {
	table := c.table()
	for i := range table {
		row := &table[i]
		if wrong := amount(row.option(), row.port).wrong; wrong != nil {
			return wrong
		}
		if row.port > math.MaxUint16 {
			return fmt.Errorf("%s: %d is more than %d", row.option(), row.port, math.MaxUint16)
		}
	}
	for i := range table {
		for _, s := range table[i].settings {
			if s.wrong != nil {
				return s.wrong
			}
		}
	}
	text := c.database()
	if text == "" {
		return nil
	}
	if expr, err := db.ParseExpr(text); err == nil && !expr.Kind.OnDisk() { // the other errors are found when the database is opened
		return fmt.Errorf("-services: %s is no database file, and what locks, sequences and quotas keep must survive the process", text)
	}
	return nil
}

// services notes options of services that are off.
func (e *examiner) services() {
	for _, row := range e.cfg.Services.table() {
		for _, s := range row.settings {
			if s.given && row.port == 0 {
				e.notes = append(e.notes, fmt.Sprintf("%s: has no effect without %s", s.option, row.option()))
			}
		}
	}
}

// database returns the expression of the services' database. It is empty if no service needs the
// database, and the server is not to keep a copy of a master's.
func (c *ServicesConfig) database() string {
	if c.Database != "" {
		return c.Database
	}
	if slices.ContainsFunc(c.table(), func(r serviceRow) bool { return r.keeps && r.port != 0 }) {
		return DefaultServices
	}
	return ""
}
