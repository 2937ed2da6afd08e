package pictures

// parts is boxes, and arrows from those that use others.
type parts struct {
	Height int     `json:"height"`
	Boxes  []part  `json:"boxes"`
	Arrows []needs `json:"arrows"`
	Texts  []words `json:"texts"`
}

// part is a box: name, text and color, and where it is: x, y, width and height.
type part struct {
	ID    string `json:"id"`
	Name  string `json:"name"`
	Text  string `json:"text"`
	Color string `json:"color"`
	Area  [4]int `json:"area"`
}

// needs is an arrow from one box to another: at an x if one is above the other, else at a y.
type needs struct {
	From string `json:"from"`
	To   string `json:"to"`
	At   int    `json:"at"`
	Text string `json:"text"`
}

// words stand free, from x and y.
type words struct {
	At    [2]int `json:"at"`
	Text  string `json:"text"`
	Class string `json:"class"`
}

func (p *parts) draw(c *canvas) int {
	at := map[string]area{}
	for _, b := range p.Boxes {
		a := area{b.Area[0], b.Area[1], b.Area[2], b.Area[3]}
		at[b.ID] = a
		c.box(a, b.Color, b.Name, b.Text)
	}
	for _, n := range p.Arrows {
		from, known := at[n.From]
		to, also := at[n.To]
		if !known || !also {
			c.fault("an arrow from %q to %q: no such boxes", n.From, n.To)
			continue
		}
		n.draw(c, from, to)
	}
	for _, w := range p.Texts {
		c.text(w.At[0], w.At[1], "start", w.Class, w.Text)
	}
	return p.Height
}

func (n needs) draw(c *canvas, from, to area) {
	switch {
	case from.y+from.h < to.y:
		n.vertical(c, from.y+from.h, to.y-2)
	case to.y+to.h < from.y:
		n.vertical(c, from.y, to.y+to.h+2)
	case from.x+from.w < to.x:
		n.horizontal(c, from.x+from.w, to.x-2)
	default:
		n.horizontal(c, from.x, to.x+to.w+2)
	}
}

func (n needs) vertical(c *canvas, start, end int) {
	c.arrow(n.At, start, n.At, end)
	if n.Text != "" {
		c.text(n.At+8, (start+end-leading*rows(n.Text))/2, "start", "label", n.Text)
	}
}

func (n needs) horizontal(c *canvas, start, end int) {
	c.arrow(start, n.At, end, n.At)
	if n.Text != "" {
		c.text((start+end)/2, n.At-4-leading*rows(n.Text), "middle", "label", n.Text)
	}
}
