//go:build linux

package main

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
)

// figure is the processor time of an operation: in microseconds on the machine of the measurement,
// and in units of the calibration, which other machines share.
type figure struct {
	name          string
	micros, units float64
}

// outcome is what a comparison has found.
type outcome string

const (
	same       outcome = ""
	slower     outcome = "SLOWER"
	faster     outcome = "faster: record anew"
	unrecorded outcome = "not in the table"
	gone       outcome = "in the table only"
)

// verdict is a workload beside its recorded figure.
type verdict struct {
	name          string
	now, recorded figure
	outcome       outcome
}

func (v verdict) ratio() float64 {
	if v.recorded.units == 0 {
		return 0
	}
	return v.now.units / v.recorded.units
}

// compare returns a verdict for each workload, in the order of now, and then for what is only in
// the table. A workload that is faster by the tolerance is worth a new table: else half of the gain
// can be lost again without a word.
func compare(recorded, now []figure, tolerance float64) []verdict {
	limit := 1 + tolerance/100
	var verdicts []verdict
	for _, n := range now {
		v := verdict{name: n.name, now: n, outcome: unrecorded}
		if i := indexOf(recorded, n.name); i >= 0 {
			v.recorded, v.outcome = recorded[i], same
			switch r := v.ratio(); {
			case r > limit:
				v.outcome = slower
			case r < 1/limit:
				v.outcome = faster
			}
		}
		verdicts = append(verdicts, v)
	}
	for _, r := range recorded {
		if indexOf(now, r.name) < 0 {
			verdicts = append(verdicts, verdict{name: r.name, recorded: r, outcome: gone})
		}
	}
	return verdicts
}

func indexOf(figures []figure, name string) int {
	return slices.IndexFunc(figures, func(f figure) bool { return f.name == name })
}

const figuresHead = "workload\tunits\tµs on this machine"

// writeFigures writes a table: a comment with the machine, a head, and a line for each workload.
func writeFigures(path, machine string, figures []figure) error {
	var text strings.Builder
	fmt.Fprintf(&text, "# processor time of an operation, written by \"make bench-check RECORD=1\" on %s\n%s\n", machine, figuresHead)
	for _, f := range figures {
		fmt.Fprintf(&text, "%s\t%.4g\t%.4g\n", f.name, f.units, f.micros)
	}
	return os.WriteFile(path, []byte(text.String()), 0o644)
}

func readFigures(path string) ([]figure, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("recorded table: %w", err)
	}
	figures, err := parseFigures(string(text))
	if err != nil {
		return nil, fmt.Errorf("recorded table %s: %w", path, err)
	}
	return figures, nil
}

func parseFigures(text string) (figures []figure, err error) {
	head := false
	for line := range strings.Lines(text) {
		line = strings.TrimSuffix(line, "\n")
		if strings.HasPrefix(line, "#") {
			continue
		}
		if !head {
			if head = line == figuresHead; !head {
				return nil, fmt.Errorf("the head is %q instead of %q", line, figuresHead)
			}
			continue
		}
		cells := strings.Split(line, "\t")
		if len(cells) != 3 {
			return nil, fmt.Errorf("not three cells: %q", line)
		}
		units, err := strconv.ParseFloat(cells[1], 64)
		micros, err2 := strconv.ParseFloat(cells[2], 64)
		if err := errors.Join(err, err2); err != nil || !(units > 0) {
			return nil, fmt.Errorf("no figures: %q", line)
		}
		if indexOf(figures, cells[0]) >= 0 {
			return nil, fmt.Errorf("%s is there twice", cells[0])
		}
		figures = append(figures, figure{name: cells[0], units: units, micros: micros})
	}
	if len(figures) == 0 {
		return nil, errors.New("no figures")
	}
	return figures, nil
}
