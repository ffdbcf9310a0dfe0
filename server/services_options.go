package server

import (
	"fmt"
	"time"
)

// serviceOption is an option of a service, which has no effect while the service is off, or any
// other option with an amount.
type serviceOption struct {
	name  string
	given bool
	wrong error // why no service can have the value; nil: the value is right
}

// amount is an option for which 0 means the default, or none.
func amount[T ~int | ~int64](name string, value T) serviceOption {
	s := serviceOption{name: name, given: value != 0}
	if value < 0 {
		s.wrong = fmt.Errorf("%s cannot be negative", name)
	}
	return s
}

// notBelowZero returns the first error of options whose values are amounts.
func notBelowZero(options ...serviceOption) error {
	for _, o := range options {
		if o.wrong != nil {
			return o.wrong
		}
	}
	return nil
}

// shortestInterval is the least that yrmcds takes.
const shortestInterval = 10 * time.Second

// interval is an amount of time that is not too short.
func interval(name string, value time.Duration) serviceOption {
	s := amount(name, value)
	if s.given && value < shortestInterval {
		s.wrong = fmt.Errorf("%s: it is at least %v", name, shortestInterval)
	}
	return s
}

// within is an option with a greatest value.
func within(name string, value, most int) serviceOption {
	s := serviceOption{name: name, given: value != 0}
	if value < 0 || value > most {
		s.wrong = fmt.Errorf("%s: %d is not within 0 to %d", name, value, most)
	}
	return s
}

// notNegative is an option whose value is reported when it is negative.
func notNegative(name string, value int64) serviceOption {
	s := serviceOption{name: name, given: value != 0}
	if value < 0 {
		s.wrong = fmt.Errorf("%s: %d is negative", name, value)
	}
	return s
}
