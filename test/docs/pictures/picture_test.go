package pictures

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const head = "title: A picture\ndescription: It shows something.\n"

func TestFaultyTextsAreNotDrawn(t *testing.T) {
	const sent = "sequence: {actors: [A, B], phases: [{steps: [{from: A, to: B, text: "
	const limits = "rollout: {replicas: 2, maxSurge: 1, maxUnavailable: 1, spans: [{text: all, steps: 2}], pods: "
	for name, tt := range map[string]struct{ text, want string }{
		"no title":                {"description: It shows something.\nparts: {}\n", "title and description are required"},
		"no picture":              {head, "one of sequence, parts, rollout and bars is required"},
		"a field with a mistake":  {head + "part: {}\n", `unknown field "part"`},
		"text over text":          {head + "parts: {height: 80, texts: [{at: [9, 9], text: one}, {at: [12, 20], text: two}]}\n", `"two" is written over "one"`},
		"text over the edge":      {head + "parts: {height: 80, texts: [{at: [780, 9], text: wide}]}\n", `"wide" leaves the picture`},
		"text below the edge":     {head + "parts: {height: 20, texts: [{at: [9, 9], text: low}]}\n", `"low" leaves the picture`},
		"text wider than a box":   {head + "parts: {height: 80, boxes: [{name: many words, area: [9, 9, 60, 40]}]}\n", `"many words" is larger than its box`},
		"text higher than a box":  {head + "parts: {height: 80, boxes: [{text: \"a\\nb\\nc\", area: [9, 9, 60, 40]}]}\n", `"a" is larger than its box`},
		"an arrow through text":   {head + "parts: {height: 200, texts: [{at: [9, 60], text: words}], " + two + ", arrows: [{from: a, to: b, at: 20}]}\n", `an arrow goes through "words"`},
		"an arrow to no box":      {head + "parts: {height: 80, arrows: [{from: a, to: b}]}\n", `an arrow from "a" to "b": no such boxes`},
		"an arrow to no actor":    {head + "sequence: {actors: [A, B], phases: [{steps: [{from: A, to: C, text: x}]}]}\n", `no actor is named "C"`},
		"a message that is long":  {head + sent + "'" + long + "'}]}]}\n", "leaves the picture"},
		"a pod without all steps": {head + limits + "[{name: a, steps: o}]}\n", "a has 1 states, and there are 2 steps"},
		"a plot of nothing":       {head + "bars: {unit: s}\n", "there are no bars"},
		"a negative bar":          {head + "bars: {unit: s, bars: [{name: a, value: -1}]}\n", "a is below 0"},
		"too many pods":           {head + limits + "[{name: a, steps: oo}, {name: b, steps: oo}, {name: c, steps: ss}, {name: d, steps: .s}]}\n", "step 1 has 4 pods"},
		"too few available pods":  {head + limits + "[{name: a, steps: ox}, {name: b, steps: os}]}\n", "step 1 has 1 pods, 0 of them available"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := draw([]byte(tt.text))
			require.Error(t, err)
			assert.Contains(t, err.Error(), tt.want)
		})
	}
}

const two = "boxes: [{id: a, area: [9, 9, 30, 20]}, {id: b, area: [9, 90, 30, 20]}]"

const long = "a message that is so long that it would leave the picture on its left and right side, although it may be as long as half of it"

func TestArrowsLeadFromEdgeToEdge(t *testing.T) {
	from := area{100, 100, 50, 50}
	for name, tt := range map[string]struct {
		to   area
		want string
	}{
		"down":  {area{100, 200, 50, 50}, "M120 150 L120 198"},
		"up":    {area{100, 0, 50, 50}, "M120 100 L120 52"},
		"right": {area{200, 100, 50, 50}, "M150 120 L198 120"},
		"left":  {area{0, 100, 50, 50}, "M100 120 L52 120"},
	} {
		c := &canvas{}
		needs{At: 120}.draw(c, from, tt.to)
		assert.Contains(t, c.body.String(), tt.want, name)
	}
}

func TestTextIsEscaped(t *testing.T) {
	svg, err := draw([]byte("title: A <b>\ndescription: a & b\nparts: {height: 80, texts: [{at: [9, 9], text: '<&>'}]}\n"))
	require.NoError(t, err)
	assert.Contains(t, string(svg), "A &lt;b&gt;")
	assert.Contains(t, string(svg), ">&lt;&amp;&gt;</text>")
}

func TestBarsAreAsLongAsTheirValues(t *testing.T) {
	svg, err := draw([]byte(head + "bars: {unit: writes, bars: [{name: a, value: 2, color: blue}, {name: b, value: 1, color: grey}, {name: c, value: 0}]}\n"))
	require.NoError(t, err)
	for _, want := range []string{`width="460" height="19" rx="6" class="blue"`, `width="230" height="19" rx="6" class="grey"`, `width="1" height="19"`, `>2</text>`} {
		assert.Contains(t, string(svg), want)
	}
}
