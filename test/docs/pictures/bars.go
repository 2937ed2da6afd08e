package pictures

import (
	"cmp"
	"slices"
	"strconv"
)

// bars is numbers that are compared, a bar each.
type bars struct {
	Unit string `json:"unit"`
	Bars []bar  `json:"bars"`
}

// bar is a number with its name and a color.
type bar struct {
	Name  string  `json:"name"`
	Value float64 `json:"value"`
	Color string  `json:"color"`
}

func (b *bars) draw(c *canvas) int {
	const (
		left = 270
		row  = 24
		room = width - left - 70 // for the longest bar; its number follows it
	)
	if len(b.Bars) == 0 {
		c.fault("there are no bars")
		return 0
	}
	longest := slices.MaxFunc(b.Bars, func(a, b bar) int { return cmp.Compare(a.Value, b.Value) }).Value
	c.text(left, 12, "start", "muted", b.Unit)
	y := 36
	for _, bar := range b.Bars {
		if bar.Value < 0 {
			c.fault("%s is below 0", bar.Name)
		}
		long := int(room * bar.Value / max(longest, 1))
		c.text(16, y+2, "start", "", bar.Name)
		c.rect(area{left, y, max(long, 1), row - 5}, bar.Color)
		c.text(left+long+8, y+2, "start", "", strconv.FormatFloat(bar.Value, 'g', 3, 64))
		y += row
	}
	return y + 10
}
