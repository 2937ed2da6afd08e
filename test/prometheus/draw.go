package main

import (
	"context"
	"fmt"
	"html"
	"math"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/prometheus/prometheus/promql"
)

// Measures of the picture in pixels: its width, which is 24 columns of the dashboard, and a unit of height.
const (
	width, unit = 1440.0, 30.0
	margin      = 8.0
	lineHeight  = 14.0
	mostLines   = 6 // of a legend: those with the highest peaks
)

var (
	colours     = []string{"#3e6fa8", "#b7861b", "#3f8f5f", "#b4503c", "#7a5ba6", "#4d9aa8", "#a65b86", "#8a8f3c"} //nolint:gochecknoglobals // a constant
	placeholder = regexp.MustCompile(`{{\s*(\w+)\s*}}`)                                                            //nolint:gochecknoglobals // a constant
)

// curve is a series of a panel.
type curve struct {
	name   string
	points []promql.FPoint
}

func (c curve) peak() float64 {
	return slices.MaxFunc(c.points, func(a, b promql.FPoint) int { return int(math.Copysign(1, a.F-b.F)) }).F
}

// draw writes the dashboard as a picture to the file, with the data of all scrapes. Rows without data are left out.
func (s *server) draw(ctx context.Context, file string, d dashboard) error {
	var drawn strings.Builder
	y := margin
	for row := range slices.Values(d.rows()) {
		title := row[0]
		top := row[0].GridPos.Y
		var inside strings.Builder
		height, filled := 0.0, false
		for _, p := range row[1:] {
			curves, err := s.curves(ctx, p)
			if err != nil {
				return fmt.Errorf("evaluate %s: %w", p.Title, err)
			}
			filled = filled || len(curves) > 0
			g := p.GridPos
			height = max(height, (g.Y-top+g.H)*unit)
			frame := box{g.X / 24 * width, y + (g.Y-top)*unit, g.W / 24 * width, g.H * unit}
			p.draw(&inside, frame, curves, span{s.began.UnixMilli(), s.now.UnixMilli(), s.step.Milliseconds()})
		}
		if !filled {
			continue
		}
		fmt.Fprintf(&drawn, `<text x="%g" y="%g" font-size="15" font-weight="bold">%s</text>`+"\n", margin, y+unit*2/3, html.EscapeString(title.Title))
		drawn.WriteString(inside.String())
		y += height
	}
	text := fmt.Sprintf(`<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %[1]g %[2]g" width="%[1]g" height="%[2]g" `+
		`font-family="Helvetica, Arial, sans-serif" font-size="11" fill="#1f2933">`+"\n"+
		"<title>%[3]s</title>\n"+`<rect width="100%%" height="100%%" fill="#f5f7fa"/>`+"\n%[4]s</svg>\n", width, y+margin, html.EscapeString(d.Title), &drawn)
	if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
		return fmt.Errorf("write the picture: %w", err)
	}
	return nil
}

// curves evaluates the panel from the first scrape to the last one.
func (s *server) curves(ctx context.Context, p panel) (all []curve, err error) {
	for _, target := range p.Targets {
		query, err := s.engine.NewRangeQuery(ctx, &s.store, nil, s.fill(target.Expr), s.began, s.now, s.step)
		if err != nil {
			return nil, err
		}
		found, err := query.Exec(ctx).Matrix()
		if err != nil {
			return nil, err
		}
		for _, one := range found {
			name := placeholder.ReplaceAllStringFunc(target.LegendFormat, func(label string) string {
				return one.Metric.Get(placeholder.FindStringSubmatch(label)[1])
			})
			points := slices.DeleteFunc(slices.Clone(one.Floats), func(p promql.FPoint) bool { return math.IsNaN(p.F) || math.IsInf(p.F, 0) })
			if len(points) > 0 {
				all = append(all, curve{name, points})
			}
		}
		query.Close()
	}
	slices.SortStableFunc(all, func(a, b curve) int { return int(math.Copysign(1, b.peak()-a.peak())) })
	return all, nil
}

// box is a part of the picture.
type box struct{ x, y, w, h float64 }

// span is the time that is drawn, in milliseconds.
type span struct{ first, last, step int64 }

// draw draws the panel into the box: numbers as they are in the end, and series over time with their legend.
func (p panel) draw(out *strings.Builder, b box, curves []curve, over span) {
	b = box{b.x + margin/2, b.y + margin/2, b.w - margin, b.h - margin}
	fmt.Fprintf(out, `<rect x="%.1f" y="%.1f" width="%.1f" height="%.1f" rx="4" fill="#ffffff" stroke="#cbd2d9"/>`+"\n", b.x, b.y, b.w, b.h)
	fmt.Fprintf(out, `<text x="%.1f" y="%.1f" font-size="12" font-weight="bold">%s</text>`+"\n", b.x+margin, b.y+18, html.EscapeString(p.Title))
	unitOf := p.FieldConfig.Defaults.Unit
	if p.Type == "stat" {
		for i, c := range curves {
			y := b.y + 40 + float64(i)*(b.h-44)/float64(len(curves))
			fmt.Fprintf(out, `<text x="%.1f" y="%.1f">%s</text>`, b.x+margin, y, html.EscapeString(c.name))
			fmt.Fprintf(out, `<text x="%.1f" y="%.1f" text-anchor="end" font-weight="bold" fill="#3f8f5f">%s</text>`+"\n",
				b.x+b.w-margin, y, amount(c.points[len(c.points)-1].F, unitOf))
		}
		return
	}
	shown := curves[:min(len(curves), mostLines)]
	for i, c := range shown {
		y := b.y + b.h - margin - float64(len(shown)-1-i)*lineHeight
		fmt.Fprintf(out, `<rect x="%.1f" y="%.1f" width="10" height="3" fill="%s"/>`, b.x+margin, y-5, colours[i%len(colours)])
		fmt.Fprintf(out, `<text x="%.1f" y="%.1f" font-size="10">%s</text>`+"\n", b.x+margin+14, y, html.EscapeString(c.name))
	}
	plot(out, box{b.x + 60, b.y + 28, b.w - 60 - 2*margin, b.h - 28 - 20 - lineHeight*float64(len(shown))}, curves, over, unitOf)
}

// plot draws the curves, the lowest peak first so that the others stay visible, over three lines of the scale.
func plot(out *strings.Builder, b box, curves []curve, over span, unitOf string) {
	if len(curves) == 0 {
		fmt.Fprintf(out, `<text x="%.1f" y="%.1f" text-anchor="middle" fill="#7b8794">no data</text>`+"\n", b.x+b.w/2-30, b.y+b.h/2)
		return
	}
	top := curves[0].peak()
	if top <= 0 {
		top = 1
	}
	for _, share := range []float64{0, 0.5, 1} {
		y := b.y + b.h*(1-share)
		fmt.Fprintf(out, `<path d="M%.1f %.1f h%.1f" stroke="#e4e7eb"/>`, b.x, y, b.w)
		fmt.Fprintf(out, `<text x="%.1f" y="%.1f" text-anchor="end" font-size="10" fill="#52606d">%s</text>`+"\n", b.x-6, y+3, amount(top*share, unitOf))
	}
	for i, c := range slices.Backward(curves) {
		var path strings.Builder
		for j, p := range c.points {
			move := "L"
			if j == 0 || p.T-c.points[j-1].T > over.step { // nothing in between
				move = "M"
			}
			fmt.Fprintf(&path, "%s%.1f %.1f", move, b.x+b.w*float64(p.T-over.first)/float64(over.last-over.first), b.y+b.h*(1-p.F/top))
		}
		fmt.Fprintf(out, `<path d="%s" fill="none" stroke="%s" stroke-width="1.6" stroke-linejoin="round"/>`+"\n", &path, colours[i%len(colours)])
	}
}

// amount writes a value as the unit of the dashboard says.
func amount(v float64, unitOf string) string {
	short := func(v float64) string { return strconv.FormatFloat(v, 'g', 3, 64) }
	switch {
	case unitOf == "bytes":
		return short(v/(1<<20)) + " MiB"
	case unitOf == "s" && v >= 2*24*60*60:
		return strconv.FormatFloat(v/(24*60*60), 'f', 0, 64) + " d"
	case unitOf == "s" && v > 0 && v < 1:
		return short(v*1000) + " ms"
	case unitOf == "s":
		return short(v) + " s"
	case strings.HasSuffix(unitOf, "ps"):
		return short(v) + "/s"
	default:
		return short(v)
	}
}
