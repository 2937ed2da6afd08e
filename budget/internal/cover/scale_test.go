package cover

import (
	"testing"

	"github.com/stretchr/testify/assert"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

func TestPodsOfATarget(t *testing.T) {
	pod := func(name string, phase corev1.PodPhase) *corev1.Pod {
		o := &corev1.Pod{}
		o.Name, o.UID, o.Status.Phase = name, types.UID(name), phase
		return o
	}
	own, ended := pod("own", corev1.PodRunning), pod("ended", corev1.PodSucceeded)
	one, two := pod("one", corev1.PodRunning), pod("two", corev1.PodPending)
	fleet := schema.GroupKind{Group: "example.com", Kind: "Fleet"}
	for name, c := range map[string]struct {
		kind            schema.GroupKind
		owned, selected []*corev1.Pod
		want            []*corev1.Pod
	}{
		"its own, and no others that its scale selects": {fleet, []*corev1.Pod{own}, []*corev1.Pod{one, own}, []*corev1.Pod{own}},
		"own ones that its scale does not select":       {fleet, []*corev1.Pod{own}, nil, []*corev1.Pod{own}},
		"none of its own":                      {fleet, nil, []*corev1.Pod{one, two}, []*corev1.Pod{one, two}},
		"its own have ended":                   {fleet, []*corev1.Pod{ended}, []*corev1.Pod{one, two}, []*corev1.Pod{one, two, ended}},
		"its own have ended, and are selected": {fleet, []*corev1.Pod{ended}, []*corev1.Pod{ended, one}, []*corev1.Pod{ended, one}},
		"none at all":                          {fleet, nil, nil, nil},
		"a Deployment": {
			schema.GroupKind{Group: "apps", Kind: "Deployment"}, nil, []*corev1.Pod{one, two}, nil,
		},
		"a ReplicationController": {schema.GroupKind{Kind: "ReplicationController"}, nil, []*corev1.Pod{one}, nil},
		"a Deployment of others":  {schema.GroupKind{Group: "apps.example.com", Kind: "Deployment"}, nil, []*corev1.Pod{one}, []*corev1.Pod{one}},
		"a CloneSet":              {schema.GroupKind{Group: "apps.kruise.io", Kind: "CloneSet"}, []*corev1.Pod{ended}, []*corev1.Pod{one}, []*corev1.Pod{ended}},
		"a UnitedDeployment":      {schema.GroupKind{Group: "apps.kruise.io", Kind: "UnitedDeployment"}, nil, []*corev1.Pod{one}, []*corev1.Pod{one}},
	} {
		t.Run(name, func(t *testing.T) { assert.Equal(t, c.want, covered(c.kind, c.owned, c.selected)) })
	}
}
