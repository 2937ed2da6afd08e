package pictures

import (
	"bytes"
	"encoding/xml"
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode"
)

// width is that of each picture in pixels: the column of a page on code hosts.
const width = 800

// leading is the distance of two lines of text.
const leading = 15

// style has the colors of a code host's light and dark pages. The background is opaque, so a picture can be read on
// a page of the other kind, too.
const style = `    text { font-family: -apple-system, "Segoe UI", Helvetica, Arial, sans-serif; font-size: 12px; fill: #1f2328 }
    .name { font-size: 14px; font-weight: 600 }
    .muted { fill: #59636e }
    .label { paint-order: stroke; stroke: #ffffff; stroke-width: 5px; stroke-linejoin: round }
    rect { fill: #ffffff; stroke: #818b98 }
    .page { stroke: #d1d9e0 }
    .grey { fill: #f6f8fa }
    .blue { fill: #ddf4ff; stroke: #0969da }
    .green { fill: #dafbe1; stroke: #1a7f37 }
    .yellow { fill: #fff8c5; stroke: #9a6700 }
    .red { fill: #ffebe9; stroke: #cf222e }
    .band { fill: #f6f8fa; stroke: none }
    .open { stroke-dasharray: 4 3 }
    path { fill: none; stroke: #59636e; stroke-width: 1.4 }
    .life { stroke: #818b98; stroke-width: 1; stroke-dasharray: 3 4 }
    .tip { fill: #59636e; stroke: none }
    @media (prefers-color-scheme: dark) {
      text { fill: #f0f6fc }
      .muted { fill: #9198a1 }
      .label { stroke: #0d1117 }
      rect { fill: #0d1117; stroke: #656c76 }
      .page { stroke: #3d444d }
      .grey { fill: #212830 }
      .blue { fill: #132b4a; stroke: #4493f8 }
      .green { fill: #123a22; stroke: #3fb950 }
      .yellow { fill: #3b2e0a; stroke: #d29922 }
      .red { fill: #4a1a1d; stroke: #f85149 }
      .band { fill: #151b23; stroke: none }
      path { stroke: #9198a1 }
      .life { stroke: #656c76 }
      .tip { fill: #9198a1; stroke: none }
    }
`

// area is a rectangle, in pixels from the upper left corner of the picture.
type area struct{ x, y, w, h int }

func (a area) meets(b area) bool {
	return a.x < b.x+b.w && b.x < a.x+a.w && a.y < b.y+b.h && b.y < a.y+a.h
}

func (a area) holds(b area) bool {
	return a.x <= b.x && b.x+b.w <= a.x+a.w && a.y <= b.y && b.y+b.h <= a.y+a.h
}

// canvas is a picture while it is drawn.
type canvas struct {
	body   strings.Builder
	lines  []area // of text
	words  []string
	arrows []area
	faults []string
}

func (c *canvas) rect(a area, class string) {
	fmt.Fprintf(&c.body, "  <rect x=\"%d\" y=\"%d\" width=\"%d\" height=\"%d\" rx=\"6\" class=\"%s\"/>\n", a.x, a.y, a.w, a.h, class)
}

func (c *canvas) line(x1, y1, x2, y2 int) {
	fmt.Fprintf(&c.body, "  <path class=\"life\" d=\"M%d %d L%d %d\"/>\n", x1, y1, x2, y2)
}

func (c *canvas) arrow(x1, y1, x2, y2 int) {
	c.arrows = append(c.arrows, area{min(x1, x2), min(y1, y2), max(x1, x2) - min(x1, x2) + 1, max(y1, y2) - min(y1, y2) + 1})
	fmt.Fprintf(&c.body, "  <path marker-end=\"url(#tip)\" d=\"M%d %d L%d %d\"/>\n", x1, y1, x2, y2)
}

// text writes lines; x is their start, middle or end, as anchor says, and y the top of the first one.
func (c *canvas) text(x, y int, anchor, class, text string) {
	for i, line := range strings.Split(text, "\n") {
		a := area{x, y + i*leading, estimate(line, class), leading}
		switch anchor {
		case "middle":
			a.x -= a.w / 2
		case "end":
			a.x -= a.w
		}
		for k, other := range c.lines {
			if a.meets(other) {
				c.fault("%q is written over %q", line, c.words[k])
			}
		}
		c.lines = append(c.lines, a)
		c.words = append(c.words, line)
		fmt.Fprintf(&c.body, "  <text x=\"%d\" y=\"%d\" text-anchor=\"%s\" class=\"%s\">%s</text>\n", x, a.y+12, anchor, class, escaped(line))
	}
}

// box is a rectangle with a name and a text in its middle; either may be empty.
func (c *canvas) box(a area, class, name, text string) {
	c.rect(a, class)
	first := len(c.lines)
	y := a.y + (a.h-leading*(rows(name)+rows(text)))/2
	if name != "" {
		c.text(a.x+a.w/2, y, "middle", "name", name)
	}
	if text != "" {
		c.text(a.x+a.w/2, y+leading*rows(name), "middle", "", text)
	}
	for i, line := range c.lines[first:] {
		if !(area{a.x + 4, a.y, a.w - 8, a.h}).holds(line) {
			c.fault("%q is larger than its box", c.words[first+i])
		}
	}
}

func (c *canvas) fault(format string, args ...any) {
	c.faults = append(c.faults, fmt.Sprintf(format, args...))
}

// picture returns the document, or what is wrong with it.
func (c *canvas) picture(title, description string, height int) ([]byte, error) {
	for i, line := range c.lines {
		if !(area{0, 0, width, height}).holds(line) {
			c.fault("%q leaves the picture", c.words[i])
		}
		if slices.ContainsFunc(c.arrows, line.meets) {
			c.fault("an arrow goes through %q", c.words[i])
		}
	}
	if len(c.faults) > 0 {
		return nil, errors.New(strings.Join(c.faults, "; "))
	}
	var b bytes.Buffer
	fmt.Fprintf(&b, "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %d %d\" width=\"%d\" height=\"%d\" role=\"img\" aria-labelledby=\"title desc\">\n",
		width, height, width, height)
	fmt.Fprintf(&b, "  <title id=\"title\">%s</title>\n  <desc id=\"desc\">%s</desc>\n", escaped(title), escaped(description))
	fmt.Fprintf(&b, "  <style>\n%s  </style>\n", style)
	b.WriteString("  <defs>\n    <marker id=\"tip\" viewBox=\"0 0 10 10\" refX=\"9\" refY=\"5\" markerWidth=\"7\" markerHeight=\"7\" orient=\"auto\">\n" +
		"      <path class=\"tip\" d=\"M0 0 L10 5 L0 10 z\"/>\n    </marker>\n  </defs>\n")
	fmt.Fprintf(&b, "  <rect x=\"0.5\" y=\"0.5\" width=\"%d\" height=\"%d\" rx=\"6\" class=\"page\"/>\n", width-1, height-1)
	b.WriteString(c.body.String())
	b.WriteString("</svg>\n")
	return b.Bytes(), nil
}

func rows(text string) int {
	if text == "" {
		return 0
	}
	return strings.Count(text, "\n") + 1
}

// estimate is how wide a line is in a wide font of those that a reader may have.
func estimate(line, class string) int {
	sum := 0.0
	for _, r := range line {
		switch {
		case strings.ContainsRune("iljI.,:;|' ", r):
			sum += 0.32
		case strings.ContainsRune("frt()-/", r):
			sum += 0.40
		case strings.ContainsRune("mwMW", r):
			sum += 0.95
		case unicode.IsUpper(r):
			sum += 0.70
		default:
			sum += 0.62
		}
	}
	size := 12.0
	if class == "name" {
		size = 15 // 14, and bold
	}
	return int(sum*size) + 1
}

func escaped(text string) string {
	var b strings.Builder
	_ = xml.EscapeText(&b, []byte(text)) // a Builder takes everything
	return b.String()
}
