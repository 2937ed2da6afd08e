package setup

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/flotilla-project/flotilla/core/testing/await"
	"github.com/flotilla-project/flotilla/core/testing/gen"
	"github.com/flotilla-project/flotilla/core/testing/testenv"
	"github.com/flotilla-project/flotilla/core/testing/testenv/operators"

	"github.com/flotilla-project/flotilla/statefulset/api/v1beta1"
)

var env testenv.Environment

func TestMain(m *testing.M) {
	env.Run(m, testenv.Options{Scheme: testenv.Scheme(v1beta1.AddToScheme), AdmissionPlugins: testenv.OwnersChecked})
}

// An operator that is installed before its CRD waits for it and then works, without a restart.
func TestOperatorWaitsForItsCRD(t *testing.T) {
	operators.StartBefore(t, &env, Operator(), "../config/crd/statefulsets.yaml")
	set := &v1beta1.StatefulSet{
		ObjectMeta: metav1.ObjectMeta{Name: "web", Namespace: env.Namespace(t)},
		Spec: v1beta1.StatefulSetSpec{
			Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}},
			Template: gen.Template(gen.Label("app", "web"), gen.Image("main", "app:1")),
		},
	}
	c := env.Client(t)
	require.NoError(t, c.Create(t.Context(), set))
	await.Until(t, func(collect *assert.CollectT) {
		require.NoError(collect, c.Get(t.Context(), client.ObjectKeyFromObject(set), set))
		assert.Equal(collect, set.Generation, set.Status.ObservedGeneration)
	})
}
