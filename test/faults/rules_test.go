package faults

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"k8s.io/apimachinery/pkg/types"
)

// at returns the time of a second of a history.
func at(second int) time.Time { return time.Unix(1000, 0).Add(time.Duration(second) * time.Second) }

// pods makes a history with one moment a second, each with these pods of workload web.
func pods(moments ...[]Pod) History {
	var h History
	for i, all := range moments {
		m := emptyMoment().next(at(i))
		for _, p := range all {
			p.App = "web"
			if p.UID == "" {
				p.UID = types.UID(p.Name)
			}
			m.Pods[p.UID] = p
		}
		h = append(h, m)
	}
	return h
}

func ready(name string) Pod { return Pod{Name: name, Node: "n-" + name, Ready: true} }

func unready(name string) Pod { return Pod{Name: name, Node: "n-" + name} }

func with(p Pod, change func(*Pod)) Pod {
	change(&p)
	return p
}

func leaving(p *Pod) { p.Leaving = true }
func failed(p *Pod)  { p.Over, p.Failed = true, true }
func held(p *Pod)    { p.Gate = "False" }

func on(node string) func(*Pod) { return func(p *Pod) { p.Node = node } }

func TestRulesOfPods(t *testing.T) {
	broken := Excuse{Nodes: []string{"n-b"}, From: at(1), To: at(2)}
	v1, v2 := Pod{Name: "a", Ready: true, Gate: "True", Image: "v1", Runs: "v1"}, Pod{Name: "a", Image: "v2", Runs: "v2", Gate: "False"}
	for name, c := range map[string]struct {
		rule Rule
		h    History
		want []string
	}{
		"enough are in service": {enough("web", 1, Excuse{}), pods([]Pod{ready("a"), unready("b")}), nil},
		"one that goes is not in service": {
			enough("web", 1, Excuse{}), pods([]Pod{with(ready("a"), leaving)}), []string{"0 pods are in service, at least 1 must be"},
		},
		"one on a broken node is excused": {enough("web", 2, broken), pods([]Pod{ready("a"), ready("b")}, []Pod{ready("a"), unready("b")}), nil},
		"not before the node broke":       {enough("web", 2, broken), pods([]Pod{ready("a"), unready("b")}), []string{"1 pods are in service, at least 2 must be"}},
		"not on another node":             {enough("web", 2, broken), pods(nil, []Pod{unready("a"), ready("b")})[1:], []string{"1 pods are in service, at least 2 must be"}},
		"not while an update holds it":    {enough("web", 1, broken), pods([]Pod{ready("b")}, []Pod{with(unready("b"), held)}), []string{"0 pods are in service, at least 1 must be"}},
		"also while it is updated then":   {enough("web", 1, broken), pods([]Pod{ready("b")}, []Pod{unready("b")}, []Pod{with(unready("b"), held)}), nil},
		"not while it goes":               {enough("web", 1, broken), pods([]Pod{ready("b")}, []Pod{with(unready("b"), leaving)}), []string{"0 pods are in service, at least 1 must be"}},
		"one that is deleted then, until there are enough": {
			enough("web", 2, broken),
			pods([]Pod{ready("a"), ready("b")}, []Pod{ready("a"), unready("b")}, []Pod{ready("a"), with(unready("b"), leaving)}, []Pod{ready("a")},
				[]Pod{ready("a"), ready("c")}, []Pod{ready("a"), unready("c")}),
			[]string{"1 pods are in service, at least 2 must be"},
		},
		"and nobody takes out another one for it": {
			enough("web", 2, broken),
			pods([]Pod{ready("a"), ready("b")}, []Pod{ready("a"), with(unready("b"), leaving)}, []Pod{with(ready("a"), leaving)}),
			[]string{"1 pods are in service, at least 2 must be", "0 pods are in service, at least 2 must be"},
		},
		"a new one is not excused": {
			enough("web", 1, broken), pods([]Pod{ready("b")}, []Pod{with(unready("c"), on("n-b"))}), []string{"0 pods are in service, at least 1 must be"},
		},
		"nor one that an update takes out after its return": {
			enough("web", 1, broken), pods([]Pod{ready("b")}, []Pod{unready("b")}, []Pod{ready("b")}, []Pod{with(unready("b"), held)}),
			[]string{"0 pods are in service, at least 1 must be"},
		},
		"until it is ready after the fault": {
			enough("web", 1, broken), pods(nil, []Pod{ready("b")}, []Pod{unready("b")}, []Pod{unready("b")}, []Pod{ready("b")}, []Pod{unready("b")})[1:],
			[]string{"0 pods are in service, at least 1 must be"},
		},
		"as many as may be":      {atMost("web", 2), pods([]Pod{ready("a"), unready("b"), with(ready("c"), leaving), with(unready("d"), failed)}), nil},
		"one too many":           {atMost("web", 1), pods([]Pod{ready("a"), unready("b")}), []string{"2 pods live, at most 1 may"}},
		"a pod on each node":     {onePerNode("web"), pods([]Pod{ready("a"), ready("b"), unready("")}), nil},
		"the next one on a node": {onePerNode("web"), pods([]Pod{with(ready("a"), leaving), with(unready("b"), on("n-a")), with(with(unready("c"), on("n-a")), failed)}), nil},
		"two on a node":          {onePerNode("web"), pods([]Pod{ready("a"), with(unready("b"), on("n-a"))}), []string{"node n-a has a, b"}},
		"ordinals":               {onePerOrdinal("web", 2), pods([]Pod{ready("web-0"), ready("web-1")}), nil},
		"an ordinal too high":    {onePerOrdinal("web", 2), pods([]Pod{ready("web-2")}), []string{"pod web-2 is one too many"}},
		"an ordinal twice":       {onePerOrdinal("web", 2), pods([]Pod{ready("web-0"), {Name: "web-0", UID: "other"}}), []string{"pod web-0 is one too many"}},
		"pods that stay":         {stays("web"), pods([]Pod{ready("a")}, []Pod{unready("a"), ready("b")}), nil},
		"a pod that goes":        {stays("web"), pods([]Pod{ready("a")}, []Pod{with(ready("a"), leaving)}), []string{"pod a is deleted"}},
		"a pod that is gone":     {stays("web"), pods([]Pod{ready("a")}, nil), []string{"pod a is deleted"}},
		"restarts":               {restartsAtMost("web", 1), pods([]Pod{{Name: "a", Restarts: 1}}), nil},
		"one restart too many":   {restartsAtMost("web", 1), pods([]Pod{{Name: "a", Restarts: 2}}), []string{"the container of pod a has restarted more than 1 times"}},
		"the new image below the partition": {
			newAtMost("web", 1), pods([]Pod{{Name: "a", Image: newImage}, {Name: "b", Image: oldImage}, with(Pod{Name: "c", Image: newImage}, leaving)}), nil,
		},
		"the new image beyond it": {
			newAtMost("web", 0), pods([]Pod{{Name: "a", Image: newImage}}), []string{"1 pods have the new image, at most 0 may"},
		},
		"a pod that is left alone": {untouched("web"), pods([]Pod{ready("a")}, []Pod{unready("a")}), nil},
		"a pod with another label": {
			untouched("web"), pods([]Pod{{Name: "a", Image: "v1", Labels: "x=1"}}, []Pod{{Name: "a", Image: "v1", Labels: "x=2"}}),
			[]string{"pod a has labels x=2 and image v1, and had x=1 and v1"},
		},
		"an update in place": {outOfService("web"), pods([]Pod{v1}, []Pod{with(v1, held)}, []Pod{with(v2, func(p *Pod) { p.Image, p.Runs = "v1", "v1" })}, []Pod{v2}, []Pod{with(v2, func(p *Pod) { p.Gate, p.Ready = "True", true })}), nil},
		"Ready once its image has changed": {
			outOfService("web"),
			pods([]Pod{with(v1, func(p *Pod) { p.Ready = false })}, []Pod{v2}, []Pod{with(v2, func(p *Pod) { p.Ready = true })}),
			[]string{"pod a is Ready before its update is over"},
		},
		"out of service twice": {
			leavesAtMost("web", 2), pods([]Pod{with(v1, held)}, []Pod{v1}, []Pod{with(v1, held)}, []Pod{with(v1, held)}, []Pod{v1}, []Pod{with(v1, held)}), nil,
		},
		"out of service again": {
			leavesAtMost("web", 1), pods([]Pod{v1}, []Pod{with(v1, held)}, []Pod{v1}, []Pod{with(v1, held)}),
			[]string{"updates take pod a out of service 2 times, at most 1 are allowed"},
		},
		"Ready before its end":    {outOfService("web"), pods([]Pod{v2}, []Pod{with(v2, func(p *Pod) { p.Ready = true })}), []string{"pod a is Ready before its update is over"}},
		"a change in service":     {outOfService("web"), pods([]Pod{v1}, []Pod{with(v1, func(p *Pod) { p.Image, p.Gate = "v2", "False" })}), []string{"pod a changes its image while it is in service"}},
		"over with the old image": {outOfService("web"), pods([]Pod{with(v2, func(p *Pod) { p.Gate, p.Runs = "True", "v1" })}), []string{"the update of pod a is over while it runs v1"}},
	} {
		t.Run(name, func(t *testing.T) {
			var texts []string
			for _, v := range Judge(c.h, []Rule{c.rule}) {
				texts = append(texts, v.Text)
			}
			assert.Equal(t, c.want, texts)
		})
	}
}

// A DaemonSet wants no pod on a closed node that has none: see section 7 of its specification.
func TestClosedNodesOfADaemonSet(t *testing.T) {
	three := []Pod{ready("a"), ready("b"), ready("c")}
	gone := []Pod{ready("a"), ready("c")}
	ended := with(with(ready("b"), leaving), failed)
	for name, c := range map[string]struct {
		h    History
		want []string
	}{
		"another one is updated": {pods(three, gone, []Pod{ready("c")}, []Pod{ready("c"), unready("b")}), nil},
		"not two":                {pods(three, gone, []Pod{unready("c")}), []string{"1 pods are in service, at least 2 must be"}},
		"not two for a pod that the fault felled there": {
			pods(three, []Pod{ready("a"), unready("b"), ready("c")}, []Pod{unready("c")}), []string{"1 pods are in service, at least 2 must be"},
		},
		"not while a pod ends there": {
			pods(three, []Pod{ready("a"), ready("c"), with(ready("b"), leaving)}, []Pod{ready("c"), with(ready("b"), leaving)}), []string{"1 pods are in service, at least 2 must be"},
		},
		"once the pod there has ended":   {pods(three, []Pod{ready("a"), ready("c"), ended}, []Pod{ready("c"), ended}), nil},
		"not once enough are in service": {pods(three, gone, []Pod{ready("c")}, three, []Pod{ready("c"), unready("b")}), []string{"1 pods are in service, at least 2 must be"}},
	} {
		t.Run(name, func(t *testing.T) {
			for i := range c.h {
				if i == 1 || i == 2 {
					c.h[i].Closed["n-b"] = true
				}
			}
			var texts []string
			for _, v := range Judge(c.h, []Rule{enoughNodes("web", 2, Excuse{Nodes: []string{"n-b"}, From: at(1), To: at(2)})}) {
				texts = append(texts, v.Text)
			}
			assert.Equal(t, c.want, texts)
		})
	}
}

func TestRulesOfClaimsAndJobs(t *testing.T) {
	claims := func(all ...map[string]types.UID) (h History) {
		for i, c := range all {
			m := emptyMoment().next(at(i))
			m.Claims = c
			h = append(h, m)
		}
		return h
	}
	jobs := func(all ...Job) History {
		m := emptyMoment().next(at(0))
		for _, j := range all {
			m.Jobs[j.UID] = j
		}
		return History{m}
	}
	kept := map[string]types.UID{"data": "1"}
	assert.Empty(t, Judge(claims(nil, kept, map[string]types.UID{"data": "1", "more": "2"}), []Rule{claimsStay()}))
	assert.Len(t, Judge(claims(kept, nil), []Rule{claimsStay()}), 1)
	assert.Len(t, Judge(claims(kept, map[string]types.UID{"data": "2"}), []Rule{claimsStay()}), 1)
	assert.Empty(t, Judge(jobs(Job{"a", "1", false}, Job{"b", "2", true}), []Rule{oneJobAtATime()}))
	assert.Equal(t, "jobs a and b are active", Judge(jobs(Job{"a", "1", true}, Job{"b", "2", true}), []Rule{oneJobAtATime()})[0].Text)
	assert.Equal(t, "job a is made twice", Judge(jobs(Job{"a", "1", false}, Job{"a", "2", false}), []Rule{oneJobAtATime()})[0].Text)
}

// A rule that is broken in moments that follow each other is one violation, which lasts until the rule holds.
func TestAViolationHasItsTimes(t *testing.T) {
	h := pods([]Pod{ready("a")}, []Pod{unready("a")}, []Pod{unready("a")}, []Pod{ready("a")}, []Pod{unready("a")})
	const text = "0 pods are in service, at least 1 must be"
	assert.Equal(t, []Violation{
		{"availability of web", at(1), at(3), text}, {"availability of web", at(4), at(4), text},
	}, Judge(h, []Rule{enough("web", 1, Excuse{})}))
}
