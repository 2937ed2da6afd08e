package main

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestReasonFaults(t *testing.T) {
	const list = "// Reasons are all.\nvar Reasons = []string{WaitGate}\n"
	const constant = "// WaitGate says why.\nconst WaitGate = \"Gate\"\n"
	cases := []struct {
		name string
		code string
		want []string
	}{
		{"in order", constant + list + `func f(p *P) { p.Wait(WaitGate, "", ""); p.group.Wait() }`, nil},
		{"no list", constant, []string{"web/plan/plan.go:3:7: WaitGate is in no list of reasons"}},
		{"not in the list", constant + list + "// EventMade says that.\nconst EventMade = \"Made\"\n",
			[]string{"web/plan/plan.go:7:7: EventMade is in no list of reasons"}},
		{"beside a list, whatever it is called", constant + list + "// Gone says that.\nconst Gone = \"Gone\"\n",
			[]string{"web/plan/plan.go:7:7: Gone is in no list of reasons"}},
		{"not exported", "// reasonA says that.\nconst reasonA = \"A\"\n", []string{"web/plan/plan.go:3:7: reasonA is in no list of reasons"}},
		{"not explained", "const WaitGate = \"Gate\"\n" + list, []string{"web/plan/plan.go:2:7: nothing explains WaitGate"}},
		{"no reason", "const waiting = \"a\"\nconst waitTime = 5\n", nil},
		{"a wait for a literal", `func f(p *P) { p.Wait("Gate", "", "") }`, []string{"web/plan/plan.go:2:16: the reason is a literal, not a constant"}},
		{"a condition", `var c = api.Condition{Type: T, Reason: "Gate"}`, []string{"web/plan/plan.go:2:9: the reason is a literal, not a constant"}},
		{"an event", `var e = &action.Event{Failed: "Gate"}`, []string{"web/plan/plan.go:2:10: the reason is a literal, not a constant"}},
		{"an assignment", `func f(s *S) { s.Reason, s.Message = "Gate", "text" }`, []string{"web/plan/plan.go:2:16: the reason is a literal, not a constant"}},
		{"what an action is for", `var a = action.Action{Reason: "ScaleOut"}`, nil},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			root := repository(map[string]string{"web/plan/plan.go": "package plan\n" + c.code})
			workspace, err := Load(root)
			require.NoError(t, err)
			faults, err := ReasonFaults(root, workspace.Modules[1])
			require.NoError(t, err)
			assert.Equal(t, c.want, faults)
		})
	}
}

// Types of the API have constants that are no reasons.
func TestReasonsOfTheAPIStandBesideTheirList(t *testing.T) {
	root := repository(map[string]string{
		"go.work": "go 1.26.0\nuse ./web/api\n", "web/api/go.mod": "module x/web/api\ngo 1.26.0\n",
		"web/api/v1/keys.go":       "package v1\nconst EventLabel = \"event\"\n",
		"web/api/v1/conditions.go": "package v1\n// A says so.\nconst A = \"A\"\nconst B = \"B\"\nvar Reasons = []string{A}\nvar ConditionTypes = []string{B}\n",
	})
	workspace, err := Load(root)
	require.NoError(t, err)
	faults, err := ReasonFaults(root, workspace.Modules[0])
	require.NoError(t, err)
	assert.Equal(t, []string{"web/api/v1/conditions.go:4:7: nothing explains B"}, faults)
}
