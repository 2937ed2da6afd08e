package pictures

import (
	"fmt"
	"strconv"
)

// rollout is the pods of a workload, a row each, over steps, a column each. It keeps the limits of the workload.
type rollout struct {
	Replicas       int      `json:"replicas"`
	MaxSurge       int      `json:"maxSurge"`
	MaxUnavailable int      `json:"maxUnavailable"`
	Spans          []span   `json:"spans"`
	Pods           []states `json:"pods"`
}

// span is a text above some of the columns.
type span struct {
	Text  string `json:"text"`
	Steps int    `json:"steps"`
}

// states of a pod, a letter a step: o old, s starting, n new, x terminating, and . for no pod.
type states struct {
	Name  string `json:"name"`
	Steps string `json:"steps"`
}

// look is how a state is drawn, and what it is.
type look struct{ class, text, meaning string }

func looks() map[rune]look {
	return map[rune]look{
		'o': {"blue", "old", "old revision, available"},
		's': {"yellow open", "start", "update revision, starting"},
		'n': {"green", "new", "update revision, available"},
		'x': {"grey open", "end", "terminating"},
	}
}

// table is where columns and rows are.
type table struct{ left, column, row, columns int }

func (t table) middle(column int) int { return t.left + column*t.column + t.column/2 }

func (r *rollout) draw(c *canvas) int {
	t := table{left: 144, row: 30}
	for _, s := range r.Spans {
		t.columns += s.Steps
	}
	t.column = (width - t.left - 12) / max(t.columns, 1)
	y := r.head(c, t)
	for _, p := range r.Pods {
		c.text(16, y+7, "start", "", p.Name)
		if len(p.Steps) != t.columns {
			c.fault("%s has %d states, and there are %d steps", p.Name, len(p.Steps), t.columns)
			return y
		}
		for i, state := range p.Steps {
			if l, ok := looks()[state]; ok {
				c.box(area{t.left + i*t.column + 4, y + 2, t.column - 8, t.row - 5}, l.class, "", l.text)
			}
		}
		y += t.row
	}
	r.counts(c, t, y+6)
	return legend(c, y+2*t.row+16)
}

// head draws what is above the pods.
func (r *rollout) head(c *canvas, t table) (y int) {
	c.text(16, 12, "start", "", fmt.Sprintf("replicas: %d, maxSurge: %d, maxUnavailable: %d", r.Replicas, r.MaxSurge, r.MaxUnavailable))
	x := t.left
	for _, s := range r.Spans {
		c.box(area{x + 2, 38, s.Steps*t.column - 4, 26}, "grey", "", s.Text)
		x += s.Steps * t.column
	}
	c.text(16, 78, "start", "muted", "step")
	for i := range t.columns {
		c.text(t.middle(i), 78, "middle", "muted", strconv.Itoa(i))
	}
	return 98
}

// counts draws the pods of each step as the operator counts them: terminating ones are gone.
func (r *rollout) counts(c *canvas, t table, y int) {
	most, least := r.Replicas+r.MaxSurge, r.Replicas-r.MaxUnavailable
	c.rect(area{8, y, width - 16, 2*t.row - 4}, "band")
	c.text(16, y+7, "start", "muted", fmt.Sprintf("pods, at most %d", most))
	c.text(16, y+t.row+5, "start", "muted", fmt.Sprintf("available, at least %d", least))
	for i := range t.columns {
		pods, available := 0, 0
		for _, p := range r.Pods {
			switch p.Steps[i] {
			case 'o', 'n':
				pods, available = pods+1, available+1
			case 's':
				pods++
			}
		}
		if pods > most || available < least {
			c.fault("step %d has %d pods, %d of them available: the limits are %d and %d", i, pods, available, most, least)
		}
		c.text(t.middle(i), y+7, "middle", "", strconv.Itoa(pods))
		c.text(t.middle(i), y+t.row+5, "middle", "", strconv.Itoa(available))
	}
}

func legend(c *canvas, y int) int {
	x := 16
	for _, state := range "osnx" {
		l := looks()[state]
		c.box(area{x, y, 44, 22}, l.class, "", l.text)
		c.text(x+50, y+4, "start", "muted", l.meaning)
		x += 50 + estimate(l.meaning, "") + 16
	}
	return y + 36
}
