package admission

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

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
