package plan

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/assert"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/flotilla-project/flotilla/core/testing/gen"

	"github.com/flotilla-project/flotilla/spread/api/v1beta1"
)

// reasonOf is the reason of a condition with the status in front, such as "False NotFound".
func reasonOf(status *v1beta1.WorkloadSpreadStatus, kind string) string {
	c := meta.FindStatusCondition(status.Conditions, kind)
	if c == nil {
		return ""
	}
	return string(c.Status) + " " + c.Reason
}

// Users read in the conditions what no subset tells.
func TestConditionsTellOfTheTargetAndOfPodsWithoutSubset(t *testing.T) {
	placed := ready("a-0", member("a"))
	for name, c := range map[string]struct {
		change         func(*Snapshot)
		target, placed string
	}{
		"all is well": {func(*Snapshot) {}, "True Found", "True Placed"},
		"no target is named": {func(s *Snapshot) {
			s.Target.Missing, s.Pods = true, nil
			s.Spread.Spec.TargetReference = nil
		}, "False NotFound", "True Placed"},
		"there is no target":     {func(s *Snapshot) { s.Target.Missing, s.Pods = true, nil }, "False NotFound", "True Placed"},
		"its replicas are hid":   {func(s *Snapshot) { s.Target.Unknown = errors.New("no number") }, "False Unreadable", "True Placed"},
		"there was no room":      {func(s *Snapshot) { s.Pods = append(s.Pods, later("1")) }, "True Found", "False WithoutSubset"},
		"the subset is gone":     {func(s *Snapshot) { s.Pods = append(s.Pods, ready("z", member("gone"))) }, "True Found", "False WithoutSubset"},
		"its node is of none":    {func(s *Snapshot) { s.Pods = append(s.Pods, ready("z", gen.Created(gen.Epoch()), gen.OnNode("node-c"))) }, "True Found", "False WithoutSubset"},
		"it comes into a subset": {func(s *Snapshot) { s.Pods[0] = later("1") }, "True Found", "True Placed"},
	} {
		s := snapshot(given("a=1"), placed)
		c.change(&s)
		p := compute(t, s)
		assert.Equal(t, c.target, reasonOf(p.Status, v1beta1.TargetFound), name)
		assert.Equal(t, c.placed, reasonOf(p.Status, v1beta1.AllPlaced), name)
	}
	s := snapshot(given("a=1"), placed, later("1"), later("2"))
	p := compute(t, s)
	assert.Equal(t, "2 pods have no subset, such as 1: all subsets were full, or their nodes match none",
		meta.FindStatusCondition(p.Status.Conditions, v1beta1.AllPlaced).Message)
}

func TestATargetThatCannotBeReadLeavesTheStatus(t *testing.T) {
	s := snapshot(given("a=1"), ready("a-0", member("a")))
	s.Spread.Status = *compute(t, s).Status
	next := Unreadable(s, errors.New("forbidden"))
	assert.Equal(t, "False Unreadable", reasonOf(next, v1beta1.TargetFound))
	assert.Equal(t, s.Spread.Status.VersionedSubsetStatuses, next.VersionedSubsetStatuses)
	assert.Equal(t, metav1.ConditionFalse, next.Conditions[0].Status)
}
