package server

import "fmt"

// examiner collects what is wrong with a configuration.
type examiner struct {
	cfg      *Config
	wrong    []error
	warnings []string
	notes    []string
}

func (e *examiner) fail(format string, args ...any) {
	e.wrong = append(e.wrong, fmt.Errorf(format, args...))
}

func (e *examiner) warn(format string, args ...any) {
	e.warnings = append(e.warnings, fmt.Sprintf(format, args...))
}
