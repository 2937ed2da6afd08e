package admission

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/flotilla-project/flotilla/core/controllers/podtemplate"

	"github.com/flotilla-project/flotilla/spread/api/v1beta1"
)

// away is a target that nobody can read: its metadata, or its template.
type away struct{ found *metav1.PartialObjectMetadata }

var errAway = errors.New("wait for the API server: context deadline exceeded")

func (a away) Get(context.Context, *v1beta1.WorkloadSpread) (*metav1.PartialObjectMetadata, error) {
	if a.found != nil {
		return a.found, nil
	}
	return nil, errAway
}

func (away) Template(context.Context, *metav1.PartialObjectMetadata) (*podtemplate.Template, error) {
	return nil, errAway
}

// A server that is slow to tell of the target keeps nobody from spreading it: the patch is judged again with each pod.
func TestPatchesOfTargetsThatCannotBeReadAreTaken(t *testing.T) {
	s := &v1beta1.WorkloadSpread{Spec: v1beta1.WorkloadSpreadSpec{Subsets: []v1beta1.WorkloadSpreadSubset{
		{Name: "a", Patch: runtime.RawExtension{Raw: []byte(`{"metadata":{"labels":{"zone":"a"}}}`)}},
	}}}
	for name, target := range map[string]away{"its metadata": {}, "its template": {&metav1.PartialObjectMetadata{}}} {
		found, err := (&Spreads{Templates: target}).withTarget(t.Context(), s, nil, "shop")
		require.NoError(t, err, name)
		assert.Empty(t, found, name)
	}
}

func (away) SelectorKeys(context.Context, *metav1.PartialObjectMetadata) ([]string, error) {
	return nil, errAway
}

// known is a target with a pod template.
type known struct{ labels map[string]string }

func (k known) Get(context.Context, *v1beta1.WorkloadSpread) (*metav1.PartialObjectMetadata, error) {
	return &metav1.PartialObjectMetadata{}, nil
}

func (k known) Template(context.Context, *metav1.PartialObjectMetadata) (*podtemplate.Template, error) {
	return &podtemplate.Template{Pod: &corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: k.labels}}}, nil
}

func (k known) SelectorKeys(context.Context, *metav1.PartialObjectMetadata) ([]string, error) {
	return []string{"app"}, nil
}

// accepting is a cluster that finds nothing wrong.
type accepting struct{ podtemplate.Cluster }

func (accepting) Validate(context.Context, string, *corev1.PodTemplateSpec, *field.Path, ...string) (field.ErrorList, error) {
	return nil, nil
}

// A pod that its workload does not know any more has a successor without end.
func TestPatchesLeaveWhatWorkloadsKnowTheirPodsBy(t *testing.T) {
	given := func(patch string) *v1beta1.WorkloadSpread {
		return &v1beta1.WorkloadSpread{Spec: v1beta1.WorkloadSpreadSpec{Subsets: []v1beta1.WorkloadSpreadSubset{
			{Name: "a", Patch: runtime.RawExtension{Raw: []byte(patch)}},
		}}}
	}
	for patch, want := range map[string]string{
		`{"metadata":{"labels":{"app":"web-a"}}}`:                      "changes metadata.labels[app]: the workload finds",
		`{"metadata":{"labels":{"app":null,"zone":"a"}}}`:              "metadata.labels[app]",
		`{"metadata":{"labels":{"pod-template-hash":"x"}}}`:            "metadata.labels[pod-template-hash]",
		`{"metadata":{"labels":{"controller-revision-hash":null}}}`:    "metadata.labels[controller-revision-hash]",
		`{"metadata":{"name":"x","namespace":"y","generateName":"z"}}`: "metadata.generateName, metadata.name, metadata.namespace",
		`{"metadata":{"ownerReferences":null}}`:                        "metadata.ownerReferences",
		`{"$patch":"delete"}`:                                          "metadata.ownerReferences",
	} {
		found, err := (&Spreads{Templates: known{map[string]string{"app": "web"}}}).withTarget(t.Context(), given(patch), nil, "shop")
		require.NoError(t, err)
		require.Len(t, found.Errors, 1, patch)
		assert.Contains(t, found.Errors[0].Error(), want)
		assert.Equal(t, "spec.subsets[0].patch", found.Errors[0].Field)
		stored := given(patch)
		edited := given(patch)
		edited.Spec.Subsets[0].Tolerations = []corev1.Toleration{{Operator: corev1.TolerationOpExists}}
		found, err = (&Spreads{Templates: known{}}).withTarget(t.Context(), edited, stored, "shop")
		require.NoError(t, err)
		assert.Empty(t, found.Errors, "the patch is stored already")
	}
	found, err := (&Spreads{Templates: away{}}).withTarget(t.Context(), given(`{"metadata":{"name":"x"}}`), nil, "shop")
	require.NoError(t, err)
	assert.Len(t, found.Errors, 1, "no target is needed for that")
	for _, right := range []string{`{"metadata":{"labels":{"app":"web","zone":"a"},"annotations":{"app":"x"}}}`, `{"metadata":{"labels":{"zone":"a"}}}`} {
		found, err = (&Spreads{Templates: known{map[string]string{"app": "web"}}, Cluster: accepting{}}).withTarget(t.Context(), given(right), nil, "shop")
		require.NoError(t, err)
		assert.Empty(t, found.Errors, right)
	}
}
