package admission

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	testclock "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/flotilla-project/flotilla/core/controllers/targets"
	"github.com/flotilla-project/flotilla/core/operator/admission"
	"github.com/flotilla-project/flotilla/core/testing/gen"

	"github.com/flotilla-project/flotilla/spread/api/v1beta1"
	"github.com/flotilla-project/flotilla/spread/internal/workloads"
)

// world has one workload with one spread, and no pod.
type world struct {
	workloads.Targets

	workload *metav1.PartialObjectMetadata
	wanted   int32
	spread   *v1beta1.WorkloadSpread
}

func (w *world) Owners(context.Context, string, metav1.Object, ...schema.GroupKind) ([]*metav1.PartialObjectMetadata, error) {
	return []*metav1.PartialObjectMetadata{w.workload}, nil
}

func (w *world) Replicas(context.Context, *metav1.PartialObjectMetadata) (targets.Replicas, error) {
	return targets.Replicas{Spec: w.wanted}, nil
}

// live is the server: the workload has an empty spec.
type live struct{ client.Reader }

func (live) Get(_ context.Context, _ client.ObjectKey, o client.Object, _ ...client.GetOption) error {
	o.(*unstructured.Unstructured).Object = map[string]any{"metadata": map[string]any{"generation": int64(1)}, "spec": map[string]any{}}
	return nil
}

func (w *world) Known(context.Context, types.NamespacedName) (*v1beta1.WorkloadSpread, error) {
	return w.spread, nil
}

func (w *world) Enter(_ context.Context, _ types.NamespacedName, r Request) error {
	if after := r.EnterIn(w.spread, func(string) bool { return true }); after != nil {
		w.spread = after
	}
	return nil
}

func (w *world) creating() (n int) {
	for _, list := range w.spread.Status.VersionedSubsetStatuses {
		for i := range list {
			n += len(list[i].CreatingPods)
		}
	}
	return n
}

// Each creation of a pod is refused after admission, by a quota for instance, and the workload tries again: with no name, or with
// another name for each try.
func TestRefusedCreationsFillNoSubset(t *testing.T) {
	for kind, c := range map[string]struct {
		apiVersion string
		named      bool
	}{
		"ReplicaSet": {"apps/v1", false},
		"Job":        {"batch/v1", false},
		"CloneSet":   {"apps.kruise.io/v1beta1", true},
	} {
		t.Run(kind, func(t *testing.T) {
			now := testclock.NewFakeClock(gen.Epoch())
			owner := metav1.OwnerReference{APIVersion: c.apiVersion, Kind: kind, Name: "web", UID: "web", Controller: new(true)}
			w := &world{
				wanted: 3,
				workload: &metav1.PartialObjectMetadata{
					TypeMeta:   metav1.TypeMeta{APIVersion: c.apiVersion, Kind: kind},
					ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web", UID: "web", Generation: 1},
				},
				spread: spread(t, "targetRef: {apiVersion: "+c.apiVersion+", kind: "+kind+", name: web}\nsubsets: [{name: a, maxReplicas: 5}, {name: b}]"),
			}
			pods := &Pods{
				Spreads: &List{
					Cached: func(context.Context, string) ([]*v1beta1.WorkloadSpread, error) {
						return []*v1beta1.WorkloadSpread{w.spread}, nil
					},
					Admitted: func(context.Context, string) time.Time { return time.Time{} },
					Clock:    now,
				},
				Workloads: workloads.ReaderOf(&workloads.Config{Clock: now}, w, live{}),
				All:       func(context.Context, string) ([]*corev1.Pod, error) { return nil, nil },
				Places:    w,
				Unplaced:  func(string, string, Reason) {},
				Clock:     now,
			}
			for try := range 8 {
				pod := gen.Pod(fmt.Sprint("web-", try), gen.Namespaced("shop"))
				pod.OwnerReferences = []metav1.OwnerReference{owner}
				if !c.named {
					pod.Name, pod.GenerateName = "", "web-"
				}
				_, err := pods.Create(t.Context(), admission.Request[*corev1.Pod]{Operation: admissionv1.Create, New: pod, Namespace: "shop", Name: pod.Name})
				require.NoError(t, err)
				assert.Contains(t, pod.Annotations[v1beta1.MatchedAnnotation], `"subset":"a"`, "try %d", try)
				assert.LessOrEqual(t, w.creating(), 3, "places under way after try %d", try)
				now.Step(4 * time.Second)
			}
		})
	}
}
