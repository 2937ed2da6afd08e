package admission

import (
	"context"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/flotilla-project/flotilla/core/testing/fuzz"

	"github.com/flotilla-project/flotilla/spread/api/v1beta1"
	"github.com/flotilla-project/flotilla/spread/internal/workloads"
)

// empty is a server without objects.
type empty struct{ client.Reader }

func (empty) List(context.Context, client.ObjectList, ...client.ListOption) error { return nil }

func FuzzAdmission(f *testing.F) {
	w := (&Spreads{
		Spreads: &List{
			Live: empty{}, Clock: clock.RealClock{}, Admitted: func(context.Context, string) time.Time { return time.Time{} },
			Cached: func(context.Context, string) ([]*v1beta1.WorkloadSpread, error) { return nil, nil },
		},
		Kinds:     &workloads.Config{Live: &shows{config: &corev1.ConfigMap{}}, Namespace: "system", Clock: clock.RealClock{}},
		Templates: known{map[string]string{"app": "web"}}, Cluster: accepting{}, Pause: 300,
		Serves: func(schema.GroupKind) bool { return true }, Mark: func(context.Context, string) error { return nil },
		IsExempt: func(context.Context, string) bool { return false },
	}).Webhook()
	fuzz.Admission{
		Validating: w.Validating().Handler, Convert: w.Convert, CRD: fuzz.ReadCRD(f, "../../../config/crd/workloadspreads.yaml"),
	}.Run(f, append(fuzz.Read(f, "../../../config/samples/*.yaml"), fuzz.Documents(f, `
apiVersion: apps.kruise.io/v1beta1
kind: WorkloadSpread
metadata: {name: web, namespace: shop}
spec:
  targetRef: {apiVersion: apps.kruise.io/v1beta1, kind: CloneSet, name: web}
  targetFilter: {selector: {matchLabels: {app: web}}, replicasPathList: [spec.replicas]}
  scheduleStrategy: {type: Adaptive, adaptive: {disableSimulationSchedule: true, rescheduleCriticalSeconds: 30}}
  subsets:
  - name: a
    maxReplicas: 50%
    tolerations: [{key: zone, operator: Equal, value: a, effect: NoExecute, tolerationSeconds: 3}]
    requiredNodeSelector: {matchExpressions: [{key: zone, operator: In, values: [a]}]}
    preferredNodeSelector: [{weight: 1, preference: {matchExpressions: [{key: zone, operator: Exists}]}}]
    patch: {metadata: {annotations: {a: b}}, spec: {containers: [{name: main, image: a}]}}
  - {name: b}
`)...)...)
}
