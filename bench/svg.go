package main

import (
	"fmt"
	"html"
	"math"
	"slices"
	"strings"
)

// plotSides are those that the plot shows, with colours that differ in lightness, too.
var plotSides = []struct{ id, colour string }{
	{"s2n3", "#0b3c7f"},
	{"s2n3-2026", "#2f7ed8"},
	{"s2n4-2026", "#7fb8f0"},
	{"go", "#7a7a7a"},
	{"c3", "#b3541e"},
	{"rustls3", "#e39a3b"},
}

const (
	plotLeft   = 400
	plotWidth  = 560
	plotRight  = 30
	plotTop    = 78
	lineHeight = 7
)

// plot shows, for each case, each side's time as a ratio against the reference, on
// a scale of powers: half as much is as far to the left as twice is to the right.
func (r *Report) plot() string {
	type mark struct {
		colour string
		ratio  Ratio
	}
	type row struct {
		label string
		marks []mark
	}
	var rows []row
	lowest, highest := 0.5, 2.0
	for _, c := range r.Cases {
		if c.Spec.Kind == "aead" {
			continue
		}
		m := primary(c)
		one := row{label: c.Name + ": " + m.Name}
		for _, s := range plotSides {
			ratio, ok := c.ratio(s.id, r.Against, m)
			if !ok || s.id == r.Against {
				continue
			}
			one.marks = append(one.marks, mark{s.colour, ratio})
			lowest, highest = min(lowest, ratio.Rounds.Q1, ratio.OfMedians), max(highest, ratio.Rounds.Q3, ratio.OfMedians)
		}
		if one.marks != nil {
			rows = append(rows, one)
		}
	}
	lowest, highest = max(lowest, 1.0/16), min(highest, 16)
	x := func(ratio float64) float64 {
		at := math.Log(ratio/lowest) / math.Log(highest/lowest)
		return plotLeft + plotWidth*min(max(at, 0), 1)
	}

	var body strings.Builder
	y := plotTop
	for i, row := range rows {
		height := len(row.marks)*lineHeight + 10
		if i%2 == 0 {
			fmt.Fprintf(&body, `<rect x="0" y="%d" width="%d" height="%d" fill="#f4f4f4"/>`+"\n", y, plotLeft+plotWidth+plotRight, height)
		}
		fmt.Fprintf(&body, `<text x="%d" y="%d" text-anchor="end">%s</text>`+"\n", plotLeft-12, y+height/2+4, html.EscapeString(row.label))
		for k, m := range row.marks {
			at := y + 5 + k*lineHeight + lineHeight/2
			fmt.Fprintf(&body, `<line x1="%.1f" y1="%d" x2="%.1f" y2="%d" stroke="%s" stroke-width="2"/>`+"\n",
				x(m.ratio.Rounds.Q1), at, x(m.ratio.Rounds.Q3), at, m.colour)
			fmt.Fprintf(&body, `<circle cx="%.1f" cy="%d" r="3" fill="%s"><title>%s</title></circle>`+"\n",
				x(m.ratio.OfMedians), at, m.colour, html.EscapeString(m.ratio.String()))
		}
		y += height
	}
	bottom := y

	var w strings.Builder
	fmt.Fprintf(&w, `<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d" font-family="sans-serif" font-size="11">`+"\n",
		plotLeft+plotWidth+plotRight, bottom+30)
	fmt.Fprintf(&w, `<rect width="100%%" height="100%%" fill="#ffffff"/>`+"\n")
	fmt.Fprintf(&w, `<text x="12" y="20" font-size="14">Time against %s: less is better. Points: ratios of medians; lines: quartiles of the rounds' ratios.</text>`+"\n",
		html.EscapeString(r.Against))
	at := 12
	for _, s := range plotSides {
		if s.id == r.Against || !slices.ContainsFunc(r.Sides, func(side Side) bool { return side.ID == s.id }) {
			continue
		}
		fmt.Fprintf(&w, `<circle cx="%d" cy="38" r="4" fill="%s"/><text x="%d" y="42">%s</text>`+"\n", at+4, s.colour, at+14, html.EscapeString(s.id))
		at += 30 + 7*len(s.id)
	}
	w.WriteString(body.String())
	for _, tick := range []float64{1.0 / 16, 0.125, 0.25, 0.5, 0.75, 1, 1.5, 2, 4, 8, 16} {
		if tick < lowest || tick > highest {
			continue
		}
		colour, width := "#cccccc", 1.0
		if tick == 1 {
			colour, width = "#000000", 1.5
		}
		fmt.Fprintf(&w, `<line x1="%.1f" y1="%d" x2="%.1f" y2="%d" stroke="%s" stroke-width="%g"/>`+"\n", x(tick), plotTop-8, x(tick), bottom+6, colour, width)
		for _, ty := range []int{plotTop - 12, bottom + 20} {
			fmt.Fprintf(&w, `<text x="%.1f" y="%d" text-anchor="middle">%.3g</text>`+"\n", x(tick), ty, tick)
		}
	}
	w.WriteString("</svg>\n")
	return w.String()
}
