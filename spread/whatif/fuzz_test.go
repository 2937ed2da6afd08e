package whatif

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"
	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	coreadmission "github.com/flotilla-project/flotilla/core/operator/admission"
	"github.com/flotilla-project/flotilla/core/plan/action"
	"github.com/flotilla-project/flotilla/core/simulation/cluster"
	"github.com/flotilla-project/flotilla/core/testing/fuzz"
	"github.com/flotilla-project/flotilla/core/testing/gen"

	"github.com/flotilla-project/flotilla/spread/api/v1beta1"
)

const (
	target = `
apiVersion: apps.kruise.io/v1beta1
kind: CloneSet
metadata: {name: web, namespace: shop, uid: w}
spec: {replicas: 5, selector: {matchLabels: {app: web}}}
`
	spreading = `
apiVersion: apps.kruise.io/v1beta1
kind: WorkloadSpread
metadata: {name: web, namespace: shop, uid: s}
spec:
  targetRef: {apiVersion: apps.kruise.io/v1beta1, kind: CloneSet, name: web}
  targetFilter: {selector: {matchLabels: {app: web}}}
  scheduleStrategy: {type: Adaptive, adaptive: {disableSimulationSchedule: true, rescheduleCriticalSeconds: 30}}
  subsets:
  - name: a
    maxReplicas: 50%
    tolerations: [{key: zone, operator: Equal, value: a, effect: NoSchedule, tolerationSeconds: 3}]
    requiredNodeSelector: {matchExpressions: [{key: zone, operator: In, values: [a]}]}
    patch: {metadata: {annotations: {controller.kubernetes.io/pod-deletion-cost: "7"}}, spec: {priorityClassName: low}}
  - {name: b, maxReplicas: 1}
status:
  subsetStatuses: [{name: a, replicas: 1, missingReplicas: 2, creatingPods: {web-0: "2026-01-02T03:04:05Z"}, deletingPods: {web-1: "2026-01-02T03:04:05Z"}}]
  versionedSubsetStatuses: {"1": [{name: a, replicas: 1, missingReplicas: 2}]}
`
)

// watched returns spreads of a world with CloneSet web and the objects.
func watched(f testing.TB, objects ...action.Object) *Spreads {
	f.Helper()
	w := cluster.New(cluster.Options{Begin: gen.Epoch()})
	set := &unstructured.Unstructured{}
	require.NoError(f, json.Unmarshal(fuzz.Documents(f, target)[0], &set.Object))
	for _, o := range append(objects, set) {
		w.Add(o)
	}
	s := New()
	s.Watch(w)
	return s
}

func podsOf(f *testing.F) []action.Object {
	f.Helper()
	var all []action.Object
	for _, raw := range fuzz.Pods(f) {
		pod := &corev1.Pod{}
		require.NoError(f, json.Unmarshal(raw, pod))
		all = append(all, pod)
	}
	return all
}

// Requests for pods of a workload that is spread.
func FuzzPods(f *testing.F) {
	var spread v1beta1.WorkloadSpread
	require.NoError(f, json.Unmarshal(fuzz.Documents(f, spreading)[0], &spread))
	s := watched(f, append(podsOf(f), &spread)...)
	// A pod that gets a subset once more has its rules twice: creation is no defaulting.
	fuzz.Admission{Mutating: s.webhook.Mutating().Handler, Validating: s.webhook.Validating().Handler, Once: true}.Run(f, fuzz.Pods(f)...)
}

// Spreads as they may be stored: any client with the right can write their status, and rules were less strict before.
func FuzzStored(f *testing.F) {
	pods := podsOf(f)
	fuzz.Typed(f, fuzz.ReadCRD(f, "../config/crd/workloadspreads.yaml"), func(t *testing.T, _, after *v1beta1.WorkloadSpread) {
		t.Helper()
		after.Namespace = pods[0].GetNamespace()
		s := watched(t, append([]action.Object{after}, pods...)...)
		for _, pod := range pods {
			pod := pod.DeepCopyObject().(*corev1.Pod)
			_, _ = s.webhook.Create(quiet(), coreadmission.Request[*corev1.Pod]{
				Operation: admissionv1.Create, New: pod, Namespace: pod.Namespace, Name: pod.Name,
			})
		}
		s.States()
	}, fuzz.Documents(f, spreading)...)
}
