package health

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/flotilla-project/flotilla/kustomize/apply"
)

// A manager whose pods are ready and whose controllers do not run is not healthy.
func TestAManagerWithoutALeaderIsIll(t *testing.T) {
	start := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	manager := installed(t, "spread", func(live map[string]*unstructured.Unstructured) {
		require.NoError(t, unstructured.SetNestedSlice(live["Deployment flotilla-system/spread-manager"].Object, []any{
			map[string]any{"type": "Available", "status": "True", "lastTransitionTime": start.Format(time.RFC3339)},
		}, "status", "conditions"))
	}).manager
	lease := apply.LeaseOf(manager)
	require.NotNil(t, lease)
	renewed := func(after time.Duration) *unstructured.Unstructured {
		live := lease.DeepCopy()
		live.Object["spec"] = map[string]any{"holderIdentity": "", "renewTime": start.Add(after).Format("2006-01-02T15:04:05.000000Z07:00")}
		return live
	}
	const ill = "Deployment flotilla-system/spread-manager has no leader: Lease flotilla-system/spread-manager has had no holder for "
	for name, c := range map[string]struct {
		live *unstructured.Unstructured
		now  time.Duration
		want string
	}{
		"it has just started":                {nil, time.Minute, ""},
		"nobody has ever led":                {nil, 2 * time.Minute, ill + "2m0s, and no controller runs"},
		"somebody leads":                     {renewed(time.Hour), time.Hour + 10*time.Second, ""},
		"the last leader has gone":           {renewed(time.Hour), time.Hour + 3*time.Minute, ill + "3m0s, and no controller runs"},
		"the Lease is from an older manager": {renewed(-time.Hour), 30 * time.Second, ""},
	} {
		t.Run(name, func(t *testing.T) {
			assert.Equal(t, c.want, leaderless(lease, c.live, manager, start.Add(c.now)))
		})
	}
	unavailable := manager.DeepCopy()
	unstructured.RemoveNestedField(unavailable.Object, "status", "conditions")
	assert.Empty(t, leaderless(lease, nil, unavailable, start.Add(time.Hour)), "its pods are told of")

	report := &Report{Feature: "spread", Faults: []string{leaderless(lease, nil, manager, start.Add(time.Hour))}}
	require.Len(t, faults(report), 1)
	assert.Contains(t, faults(report)[0].Help, "logs deployment/spread-manager")
}
