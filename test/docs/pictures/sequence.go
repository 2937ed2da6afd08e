package pictures

import "slices"

// sequence is messages between actors, from above to below.
type sequence struct {
	Actors []string `json:"actors"`
	Phases []phase  `json:"phases"`
	Footer string   `json:"footer"`
}

// phase is steps that belong together; its text stands on the left.
type phase struct {
	Text  string `json:"text"`
	Steps []step `json:"steps"`
}

// step is an arrow from one actor to another, or a box on one, in a color.
type step struct {
	From  string `json:"from"`
	To    string `json:"to"`
	At    string `json:"at"`
	Color string `json:"color"`
	Text  string `json:"text"`
}

func (s *sequence) draw(c *canvas) int {
	const left, half, top, head, gap = 124, 64, 16, 34, 10
	x := func(actor string) int {
		i := slices.Index(s.Actors, actor)
		if i < 0 {
			c.fault("no actor is named %q", actor)
		}
		return left + half + max(i, 0)*(width-left-2*half-20)/max(len(s.Actors)-1, 1)
	}
	end := top + head + gap
	for _, p := range s.Phases {
		end += p.height() + gap
	}
	y := top + head + gap
	for _, p := range s.Phases { // below everything else
		c.rect(area{8, y, width - 16, p.height()}, "band")
		y += p.height() + gap
	}
	for _, actor := range s.Actors {
		c.line(x(actor), top+head, x(actor), end)
		c.box(area{x(actor) - half + 4, top, 2*half - 8, head}, "blue", actor, "")
	}
	y = top + head + gap
	for _, p := range s.Phases {
		c.text(18, y+9, "start", "muted", p.Text)
		at := y + 8
		for _, step := range p.Steps {
			if step.At != "" {
				c.box(area{x(step.At) - half - 4, at + 2, 2*half + 8, step.height() - 6}, step.Color, "", step.Text)
			} else {
				below := at + step.height() - 8
				c.text((x(step.From)+x(step.To))/2, at, "middle", "label", step.Text)
				c.arrow(x(step.From), below, x(step.To), below)
			}
			at += step.height()
		}
		y += p.height() + gap
	}
	if s.Footer == "" {
		return y
	}
	c.box(area{8, y, width - 16, 40}, "green", "", s.Footer)
	return y + 40 + gap
}

func (p phase) height() int {
	sum := 14
	for _, s := range p.Steps {
		sum += s.height()
	}
	return max(sum, rows(p.Text)*leading+18)
}

func (s step) height() int {
	if s.At != "" {
		return rows(s.Text)*leading + 16
	}
	return rows(s.Text)*leading + 12
}
