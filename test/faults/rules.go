package faults

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// Rule is an invariant of one run. It may remember moments: make it anew for each history.
type Rule struct {
	// Invariant is the name in the verdict.
	Invariant string
	// Look returns the subjects that break the rule at the moment, each with the reason. Moments come in their order.
	Look func(Moment) []string
}

// Violation is a rule that was broken.
type Violation struct {
	Invariant string    `json:"invariant"`
	From      time.Time `json:"from"`
	To        time.Time `json:"to"`
	Text      string    `json:"text"`
}

// Excuse is the part of the cluster that a fault breaks. A pod on one of these nodes is excused if it was ready and became
// unready after the begin of the fault, while no update held it out of service and nobody deleted it. It is excused until it is
// ready again, also while it is updated, because an update of an unready pod costs no availability. Once it is seen ready
// after the end of the fault, it is never excused again. If it is deleted, it is excused until enough pods are in service.
type Excuse struct {
	Nodes    []string
	From, To time.Time
}

// Judge returns the violations in the history, by their time. Equal texts of consecutive moments are one violation.
func Judge(history History, rules []Rule) []Violation {
	var all []Violation
	for _, rule := range rules {
		open := map[string]int{} // indexes in all
		for _, m := range history {
			broken := map[string]int{}
			for _, text := range rule.Look(m) {
				i, known := open[text]
				if !known {
					i = len(all)
					all = append(all, Violation{Invariant: rule.Invariant, From: m.At, Text: text})
				}
				all[i].To = m.At
				broken[text] = i
			}
			for text, i := range open {
				if _, still := broken[text]; !still {
					all[i].To = m.At
				}
			}
			open = broken
		}
	}
	slices.SortStableFunc(all, func(a, b Violation) int {
		return cmp.Or(a.From.Compare(b.From), cmp.Compare(a.Text, b.Text))
	})
	return all
}

// of returns the pods of a workload, by name.
func (m Moment) of(app string) []Pod {
	pods := slices.Collect(maps.Values(m.Pods))
	pods = slices.DeleteFunc(pods, func(p Pod) bool { return p.App != app })
	slices.SortFunc(pods, func(a, b Pod) int { return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.UID, b.UID)) })
	return pods
}

// serves reports whether the pod is in service.
func (p Pod) serves() bool { return p.Ready && !p.Leaving && !p.Over }

// lives reports whether the pod counts as a replica.
func (p Pod) lives() bool { return !p.Leaving && !p.Over }

// enough: at least that many pods of the workload are in service or excused.
func enough(app string, least int, excuse Excuse) Rule {
	count := inService(app, excuse)
	return Rule{"availability of " + app, func(m Moment) []string { return short(count(m, least, nil), least) }}
}

// enoughNodes is enough for a DaemonSet. A closed node whose pod has ended gets no other one, and is excused until the least
// number of pods is in service.
func enoughNodes(app string, least int, excuse Excuse) Rule {
	count, without := inService(app, excuse), map[string]bool{}
	return Rule{"availability of " + app, func(m Moment) []string {
		pods := m.of(app)
		maps.Copy(without, m.Closed)
		maps.DeleteFunc(without, func(node string, _ bool) bool {
			has := slices.ContainsFunc(pods, func(p Pod) bool { return p.Node == node && !p.Over })
			return m.Closed[node] && has
		})
		return short(count(m, least, without), least)
	}}
}

func short(n, least int) []string {
	if n >= least {
		return nil
	}
	return []string{fmt.Sprintf("%d pods are in service, at least %d must be", n, least)}
}

// inService counts the pods of the workload that are in service or excused, and the nodes without a pod, each node once.
// It remembers moments. Once the least number is in service it forgets deleted pods, and clears without.
func inService(app string, excuse Excuse) func(m Moment, least int, without map[string]bool) int {
	served, felled, recovered := map[types.UID]bool{}, map[types.UID]string{}, map[types.UID]bool{} // felled has the node
	return func(m Moment, least int, without map[string]bool) int {
		n := 0
		for _, p := range m.of(app) {
			breaks := !m.At.Before(excuse.From) && slices.Contains(excuse.Nodes, p.Node) && !recovered[p.UID]
			switch {
			case p.serves():
				n++
				served[p.UID] = true
				recovered[p.UID] = recovered[p.UID] || m.At.After(excuse.To)
				delete(felled, p.UID)
			case breaks && served[p.UID] && !p.Ready && p.Gate != "False" && p.lives():
				felled[p.UID] = p.Node
			}
		}
		if n >= least {
			maps.DeleteFunc(felled, func(uid types.UID, _ string) bool {
				p, there := m.Pods[uid]
				return !there || !p.lives()
			})
			clear(without)
		}
		for node := range without {
			if !slices.Contains(slices.Collect(maps.Values(felled)), node) {
				n++
			}
		}
		return n + len(felled)
	}
}

// atMost: no more pods of the workload live than replicas and surge allow.
func atMost(app string, most int) Rule {
	return Rule{"size of " + app, func(m Moment) []string {
		n := 0
		for _, p := range m.of(app) {
			if p.lives() {
				n++
			}
		}
		if n <= most {
			return nil
		}
		return []string{fmt.Sprintf("%d pods live, at most %d may", n, most)}
	}}
}

// onePerNode: no node has two pods of the workload that are neither leaving nor failed.
func onePerNode(app string) Rule {
	return Rule{"one pod of " + app + " for each node", func(m Moment) []string {
		var broken []string
		names := map[string][]string{}
		for _, p := range m.of(app) {
			if !p.Leaving && !p.Failed && p.Node != "" {
				names[p.Node] = append(names[p.Node], p.Name)
			}
		}
		for _, node := range slices.Sorted(maps.Keys(names)) {
			if len(names[node]) > 1 {
				broken = append(broken, fmt.Sprintf("node %s has %s", node, strings.Join(names[node], ", ")))
			}
		}
		return broken
	}}
}

// onePerOrdinal: each pod of the workload has an ordinal below the number of replicas, and no two have the same one.
func onePerOrdinal(app string, replicas int) Rule {
	return Rule{"ordinals of " + app, func(m Moment) []string {
		var broken []string
		seen := map[string]bool{}
		for _, p := range m.of(app) {
			ordinal, err := strconv.Atoi(strings.TrimPrefix(p.Name, app+"-"))
			if err != nil || ordinal >= replicas || seen[p.Name] {
				broken = append(broken, fmt.Sprintf("pod %s is one too many", p.Name))
			}
			seen[p.Name] = true
		}
		return broken
	}}
}

// stays: no pod of the workload is ever deleted.
func stays(app string) Rule {
	known := map[types.UID]string{}
	return Rule{"pods of " + app + " stay themselves", func(m Moment) []string {
		for _, p := range m.of(app) {
			known[p.UID] = p.Name
		}
		var broken []string
		for uid, name := range known {
			if p, there := m.Pods[uid]; !there || p.Leaving {
				broken = append(broken, fmt.Sprintf("pod %s is deleted", name))
			}
		}
		return slices.Sorted(slices.Values(broken))
	}}
}

// newAtMost: no more pods of the workload live with the new image than its partition, or its pause, allows.
func newAtMost(app string, most int) Rule {
	return Rule{"partition of " + app, func(m Moment) []string {
		n := 0
		for _, p := range m.of(app) {
			if p.lives() && p.Image == newImage {
				n++
			}
		}
		if n <= most {
			return nil
		}
		return []string{fmt.Sprintf("%d pods have the new image, at most %d may", n, most)}
	}}
}

// untouched: nobody changes the labels or the image of a pod of the workload.
func untouched(app string) Rule {
	first := map[types.UID]Pod{}
	return Rule{"pods of " + app + " are left alone", func(m Moment) []string {
		var broken []string
		for _, p := range m.of(app) {
			was, known := first[p.UID]
			if !known {
				first[p.UID] = p
			} else if was.Labels != p.Labels || was.Image != p.Image {
				broken = append(broken, fmt.Sprintf("pod %s has labels %s and image %s, and had %s and %s", p.Name, p.Labels, p.Image, was.Labels, was.Image))
			}
		}
		return broken
	}}
}

// outOfService: once an update has taken a pod of the workload out of service, the pod is not seen Ready until the update
// is over, its image changes only out of service, and the update is not over before the new image runs.
func outOfService(app string) Rule {
	before, out := map[types.UID]Pod{}, map[types.UID]bool{}
	return Rule{"updates of " + app + " in place", func(m Moment) []string {
		var broken []string
		for _, p := range m.of(app) {
			old, known := before[p.UID]
			out[p.UID] = p.Gate == "False" && (out[p.UID] || !p.Ready)
			switch {
			case out[p.UID] && p.Ready:
				broken = append(broken, fmt.Sprintf("pod %s is Ready before its update is over", p.Name))
			case known && old.Image != p.Image && old.Ready:
				broken = append(broken, fmt.Sprintf("pod %s changes its image while it is in service", p.Name))
			case p.Gate == "True" && p.Runs != "" && p.Runs != p.Image:
				broken = append(broken, fmt.Sprintf("the update of pod %s is over while it runs %s", p.Name, p.Runs))
			}
			before[p.UID] = p
		}
		return broken
	}}
}

// leavesAtMost: updates take each pod of the workload out of service at most that often.
func leavesAtMost(app string, most int) Rule {
	held, left := map[types.UID]bool{}, map[types.UID]int{}
	return Rule{"pods of " + app + " leave service", func(m Moment) []string {
		var broken []string
		for _, p := range m.of(app) {
			if p.Gate == "False" && held[p.UID] {
				left[p.UID]++
			}
			held[p.UID] = p.Gate == "True"
			if left[p.UID] > most {
				broken = append(broken, fmt.Sprintf("updates take pod %s out of service %d times, at most %d are allowed", p.Name, left[p.UID], most))
			}
		}
		return broken
	}}
}

// claimsStay: a claim that was seen stays, with its UID.
func claimsStay() Rule {
	known := map[string]types.UID{}
	return Rule{"claims stay", func(m Moment) []string {
		for name, uid := range m.Claims {
			if known[name] == "" {
				known[name] = uid
			}
		}
		var broken []string
		for name, uid := range known {
			if m.Claims[name] != uid {
				broken = append(broken, fmt.Sprintf("claim %s is deleted or another one", name))
			}
		}
		return slices.Sorted(slices.Values(broken))
	}}
}

// oneJobAtATime: no two Jobs are active, and no Job is made twice.
func oneJobAtATime() Rule {
	made := map[string]types.UID{}
	return Rule{"jobs of cron", func(m Moment) []string {
		var active, broken []string
		for uid, j := range m.Jobs {
			if j.Active {
				active = append(active, j.Name)
			}
			if made[j.Name] == "" {
				made[j.Name] = uid
			}
			if made[j.Name] != uid {
				broken = append(broken, fmt.Sprintf("job %s is made twice", j.Name))
			}
		}
		if len(active) > 1 {
			broken = append(broken, "jobs "+strings.Join(slices.Sorted(slices.Values(active)), " and ")+" are active")
		}
		return broken
	}}
}

// restartsAtMost: the container of each pod of the workload restarts at most that often.
func restartsAtMost(app string, most int32) Rule {
	return Rule{"restarts of " + app, func(m Moment) []string {
		var broken []string
		for _, p := range m.of(app) {
			if p.Restarts > most {
				broken = append(broken, fmt.Sprintf("the container of pod %s has restarted more than %d times", p.Name, most))
			}
		}
		return broken
	}}
}
