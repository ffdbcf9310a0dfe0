//go:build linux

package main

import (
	"bytes"
	"encoding/xml"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// chart is a line chart over the number of records, which is on a logarithmic axis.
type chart struct {
	file, title, unit string
	note              string // below the chart: where the figures are from
	logY              bool
	lines             []line
}

type line struct {
	name   string
	points []point
}

type point struct{ x, y float64 }

// The places of a picture, in its own units. The names of the lines stand to the right, each at the
// height of its last point, so nobody has to look up colours.
//
//	title
//	unit
//	┌──────────────────────┐ name
//	│                      │ name
//	└──────────────────────┘
//	  1M    4M    16M   64M   records
//	note
const (
	width, height = 840, 400
	left, right   = 70, 540
	top, bottom   = 64, 324
	lineGap       = 17 // between names
)

// style serves light and dark backgrounds: the picture has a background of its own, which follows
// the reader's setting. Blue, orange, green and violet differ in lightness too, so that people with
// any kind of colour vision can tell them apart; the names beside the lines do not need colours at
// all.
const style = `
.back{fill:#ffffff}.grid{stroke:#d8dee4}.text{fill:#1f2328}.faint{fill:#656d76}
.s0{--c:#0072b2}.s1{--c:#d55e00}.s2{--c:#007a5a}.s3{--c:#a8508a}
@media(prefers-color-scheme:dark){.back{fill:#0d1117}.grid{stroke:#30363d}.text{fill:#e6edf3}.faint{fill:#8d96a0}
.s0{--c:#56b4e9}.s1{--c:#e69f00}.s2{--c:#2cc295}.s3{--c:#e08cc0}}
text{font:13px system-ui,-apple-system,"Segoe UI",sans-serif}.title{font-size:16px;font-weight:600}.note{font-size:11px}
.grid{stroke-width:1}.line{fill:none;stroke:var(--c);stroke-width:2.5;stroke-linejoin:round}.dot{fill:var(--c)}.name{fill:var(--c)}
`

// svg draws the chart. The same chart makes the same bytes.
func (c *chart) svg() []byte {
	var xs, ys []float64
	for _, l := range c.lines {
		for _, p := range l.points {
			xs, ys = append(xs, p.x), append(ys, p.y)
		}
	}
	x := sizeAxis(xs, left, right)
	y := linearAxis(ys, bottom, top)
	if c.logY {
		y = logAxis(ys, bottom, top)
	}
	d := &drawing{}
	d.printf(`<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" role="img" aria-label="%s">`, width, height, escape(c.title))
	d.printf(`<title>%s</title>`, escape(c.title))
	d.printf(`<style>%s</style>`, style)
	d.printf(`<rect class="back" width="%d" height="%d" rx="8"/>`, width, height)
	d.text("title text", "start", left-46, 28, c.title)
	d.text("faint", "start", left-46, top-14, c.unit)
	d.axes(x, y)
	d.text("note faint", "start", left-46, height-14, c.note)
	d.lines(c.lines, x, y)
	d.printf(`</svg>`)
	return d.Bytes()
}

// drawing is the text of a picture.
type drawing struct{ bytes.Buffer }

func (d *drawing) printf(format string, args ...any) {
	fmt.Fprintf(&d.Buffer, format+"\n", args...)
}

func (d *drawing) text(class, anchor string, x, y float64, text string) {
	d.printf(`<text class="%s" text-anchor="%s" x="%s" y="%s">%s</text>`, class, anchor, place(x), place(y), escape(text))
}

func (d *drawing) axes(x, y *axis) {
	for _, v := range y.ticks {
		d.printf(`<line class="grid" x1="%d" y1="%s" x2="%d" y2="%[2]s"/>`, left, place(y.at(v)), right)
		d.text("faint", "end", left-8, y.at(v)+4, label(v))
	}
	for _, v := range x.ticks {
		d.printf(`<line class="grid" x1="%s" y1="%d" x2="%[1]s" y2="%[3]d"/>`, place(x.at(v)), top, bottom)
		d.text("faint", "middle", x.at(v), bottom+20, strings.Replace(sizeName(int(v)), "m", "M", 1))
	}
	d.text("faint", "middle", (left+right)/2, bottom+42, "records")
}

func (d *drawing) lines(lines []line, x, y *axis) {
	ends := make([]float64, len(lines))
	for i, l := range lines {
		ends[i] = y.at(l.points[len(l.points)-1].y)
	}
	ends = spread(ends, lineGap, top, bottom)
	for i, l := range lines {
		var at []string
		for _, p := range l.points {
			at = append(at, place(x.at(p.x))+","+place(y.at(p.y)))
		}
		d.printf(`<g class="s%d"><polyline class="line" points="%s"/>`, i%colours, strings.Join(at, " "))
		for _, p := range l.points {
			d.printf(`<circle class="dot" cx="%s" cy="%s" r="4"><title>%s: %s</title></circle>`, place(x.at(p.x)), place(y.at(p.y)), escape(l.name), label(p.y))
		}
		last := l.points[len(l.points)-1]
		d.text("name", "start", right+12, ends[i]+4, fmt.Sprintf("%s: %s", l.name, label(last.y)))
		d.printf(`</g>`)
	}
}

const colours = 4 // in style

// spread moves heights apart, so that there is a gap between any two, and keeps their order. They
// stay between the bounds if there is room for all.
func spread(heights []float64, gap, top, bottom float64) []float64 {
	order := make([]int, len(heights))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int {
		if heights[a] < heights[b] {
			return -1
		}
		if heights[a] > heights[b] {
			return 1
		}
		return 0
	})
	out := slices.Clone(heights)
	for k, i := range order { // downwards
		out[i] = max(out[i], top)
		if k > 0 {
			out[i] = max(out[i], out[order[k-1]]+gap)
		}
	}
	for k := len(order) - 1; k >= 0; k-- { // and up again from the bottom
		limit := bottom
		if k < len(order)-1 {
			limit = out[order[k+1]] - gap
		}
		out[order[k]] = min(out[order[k]], limit)
	}
	return out
}

// place writes a coordinate with one decimal.
func place(v float64) string { return strconv.FormatFloat(v, 'f', 1, 64) }

func escape(text string) string {
	var b strings.Builder
	_ = xml.EscapeText(&b, []byte(text)) // a Builder returns no errors
	return b.String()
}
