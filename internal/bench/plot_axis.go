//go:build linux

package main

import (
	"math"
	"slices"
	"strconv"
)

// axis maps values to places on the picture.
type axis struct {
	log      bool
	least    float64
	most     float64
	from, to float64 // where least and most are
	ticks    []float64
}

func (a *axis) at(v float64) float64 {
	share := (v - a.least) / (a.most - a.least)
	if a.log {
		share = math.Log(v/a.least) / math.Log(a.most/a.least)
	}
	return a.from + share*(a.to-a.from)
}

// logAxis spans the values with ticks at 1, 2 and 5 times the powers of ten, fewer of them where
// they would be too many. Its ends are ticks.
func logAxis(values []float64, from, to float64) *axis {
	least, most := slices.Min(values), slices.Max(values)
	for _, steps := range [][]float64{{1, 2, 5}, {1, 3}, {1}} {
		var ticks []float64
		for e := math.Floor(math.Log10(least)) - 1; e <= math.Log10(most)+1; e++ {
			for _, s := range steps {
				ticks = append(ticks, s*math.Pow(10, e))
			}
		}
		first, last := 0, len(ticks)-1
		for ticks[first+1] <= least*rounding {
			first++
		}
		for last > first+1 && ticks[last-1] >= most/rounding {
			last--
		}
		ticks = ticks[first : last+1]
		const many = 8
		if len(ticks) <= many || len(steps) == 1 {
			return &axis{log: true, least: ticks[0], most: ticks[len(ticks)-1], from: from, to: to, ticks: ticks}
		}
	}
	return nil // the last steps return
}

// rounding is what is left of a tick's value by the computation of powers of ten.
const rounding = 1 + 1e-9

// linearAxis begins at 0 and has ticks at multiples of 1, 2 or 5 times a power of ten, at most
// seven.
func linearAxis(values []float64, from, to float64) *axis {
	most := slices.Max(values)
	step := math.Pow(10, math.Floor(math.Log10(most))-1)
	for i := 0; most/step > 6; i++ {
		step *= []float64{2, 2.5, 2}[i%3]
	}
	a := &axis{from: from, to: to, most: math.Ceil(most/step/rounding) * step}
	for i := 0; float64(i)*step <= a.most*rounding; i++ {
		a.ticks = append(a.ticks, float64(i)*step)
	}
	return a
}

// sizeAxis has the sizes themselves as ticks, so that each point is above its size.
func sizeAxis(sizes []float64, from, to float64) *axis {
	ticks := slices.Compact(slices.Sorted(slices.Values(sizes)))
	const margin = 1.15
	return &axis{log: true, least: ticks[0] / margin, most: ticks[len(ticks)-1] * margin, from: from, to: to, ticks: ticks}
}

// label writes a number shortly: three digits, all digits before the point, or a k, M or G where
// there would be more than five.
func label(v float64) string {
	unit := ""
	for _, u := range []string{"k", "M", "G"} {
		if v < 99999.5 {
			break
		}
		v, unit = v/1000, u
	}
	if v >= 999.5 {
		return thousands(v) + unit
	}
	f, _ := strconv.ParseFloat(strconv.FormatFloat(v, 'g', 3, 64), 64) // its own output
	return strconv.FormatFloat(f, 'f', -1, 64) + unit
}
