package condition_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/flotilla-project/flotilla/core/status/condition"
)

var (
	early = metav1.NewTime(time.Unix(100, 0))
	late  = metav1.NewTime(time.Unix(200, 0))
)

func made(conditionType string, status corev1.ConditionStatus, message string, transition, update metav1.Time) condition.Condition {
	return condition.Condition{
		Type: conditionType, Status: status, Reason: "Because", Message: message,
		LastTransitionTime: transition, LastUpdateTime: update,
	}
}

func TestSet(t *testing.T) {
	theirs := made("Theirs", corev1.ConditionTrue, "theirs", early, early)
	ours := made("Ours", corev1.ConditionTrue, "same", early, early)
	tests := map[string]struct {
		have []condition.Condition
		want condition.Condition
		list []condition.Condition
	}{
		"a new one is appended": {
			have: []condition.Condition{theirs},
			want: made("Ours", corev1.ConditionTrue, "same", metav1.Time{}, metav1.Time{}),
			list: []condition.Condition{theirs, made("Ours", corev1.ConditionTrue, "same", late, late)},
		},
		"one that says the same stays whole": {
			have: []condition.Condition{ours, theirs},
			want: made("Ours", corev1.ConditionTrue, "same", metav1.Time{}, metav1.Time{}),
			list: []condition.Condition{ours, theirs},
		},
		"another message keeps the transition": {
			have: []condition.Condition{ours, theirs},
			want: made("Ours", corev1.ConditionTrue, "other", metav1.Time{}, metav1.Time{}),
			list: []condition.Condition{made("Ours", corev1.ConditionTrue, "other", early, late), theirs},
		},
		"another status is a transition": {
			have: []condition.Condition{ours, theirs},
			want: made("Ours", corev1.ConditionFalse, "same", metav1.Time{}, metav1.Time{}),
			list: []condition.Condition{made("Ours", corev1.ConditionFalse, "same", late, late), theirs},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			have := append(make([]condition.Condition, 0, 10), test.have...)
			assert.Equal(t, test.list, condition.Set(have, test.want, late))
			assert.Equal(t, test.have, have, "the given list was changed")
			assert.Empty(t, have[len(have) : len(have)+1][0], "the given list's array was written to")
		})
	}
}

func TestRemoveLeavesTheOthers(t *testing.T) {
	list := []condition.Condition{{Type: "A"}, {Type: "B"}, {Type: "C"}}
	assert.Equal(t, []condition.Condition{{Type: "A"}, {Type: "C"}}, condition.Remove(list, "B"))
	assert.Equal(t, []condition.Condition{{Type: "A"}, {Type: "B"}, {Type: "C"}}, list)
	assert.Equal(t, list, condition.Remove(list, "D"))
	assert.Equal(t, "B", condition.Find(list, "B").Type)
	assert.Nil(t, condition.Find(list, "D"))
}

func TestSummarize(t *testing.T) {
	tests := map[string]struct {
		summary condition.Summary
		want    map[string]corev1.ConditionStatus
		reason  string
	}{
		"complete": {
			summary: condition.Summary{Complete: true},
			want:    map[string]corev1.ConditionStatus{condition.Ready: corev1.ConditionTrue},
			reason:  "Ready",
		},
		"working": {
			summary: condition.Summary{Reason: "RollingOut"},
			want:    map[string]corev1.ConditionStatus{condition.Ready: corev1.ConditionFalse, condition.Reconciling: corev1.ConditionTrue},
			reason:  "RollingOut",
		},
		"stuck": {
			summary: condition.Summary{Stuck: true, Complete: true},
			want:    map[string]corev1.ConditionStatus{condition.Ready: corev1.ConditionFalse, condition.Stalled: corev1.ConditionTrue},
			reason:  "Stalled",
		},
	}
	for name, test := range tests {
		for before := range tests {
			t.Run(before+" then "+name, func(t *testing.T) {
				list := condition.Summarize(nil, tests[before].summary, early)
				list = condition.Summarize(list, test.summary, late)
				got := map[string]corev1.ConditionStatus{}
				for _, c := range list {
					got[c.Type] = c.Status
					assert.Equal(t, test.reason, c.Reason)
				}
				assert.Equal(t, test.want, got)
			})
		}
	}
}

func TestConvertKeepsNil(t *testing.T) {
	name := func(c condition.Condition) string { return c.Type }
	assert.Nil(t, condition.Convert(nil, name))
	assert.Equal(t, []string{"A"}, condition.Convert([]condition.Condition{{Type: "A"}}, name))
}
