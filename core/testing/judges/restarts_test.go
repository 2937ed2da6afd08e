package judges_test

import (
	"maps"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"

	"github.com/flotilla-project/flotilla/core/contract"
	"github.com/flotilla-project/flotilla/core/plan/action"
	"github.com/flotilla-project/flotilla/core/simulation/cluster"
	"github.com/flotilla-project/flotilla/core/testing/judges"
)

// A pod may serve before its containers are restarted only if its update is to write that later: when its next batch, or its
// plan, was refused.
func TestAPodServesAfterItsRestarts(t *testing.T) {
	gate := func(status string) action.Patch {
		return action.Patch{Subresource: "status", Body: body{"status": body{"conditions": []any{body{"type": contract.InPlaceUpdateReady, "status": status}}}}}
	}
	for name, c := range map[string]struct {
		annotations body
		violated    bool
	}{
		"nothing to come":             {violated: true},
		"a restart of its next batch": {annotations: body{contract.InPlaceUpdateStateAnnotation: `{"revision":"web-2","nextContainerRestarts":["main"]}`}},
		"a restart of its plan":       {annotations: body{contract.InPlaceUpdateGraceAnnotation: `{"revision":"web-2","containerRestarts":["main"]}`}},
		"a plan of something else": {
			annotations: body{contract.InPlaceUpdateGraceAnnotation: `{"revision":"web-2","containerImages":{"main":"app:v2"}}`}, violated: true,
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := judges.New(cluster.Options{Calm: true})
			w.NodeAgents()
			o := bare("web-1")
			o.Spec.ReadinessGates = []corev1.PodReadinessGate{{ConditionType: contract.InPlaceUpdateReady}}
			create(t, w, o)
			for _, status := range []string{"True", "False"} {
				patch(t, w, gate(status))
				w.Advance(time.Minute)
			}
			annotations := body{contract.RestartInPlaceAnnotation: "1 main"}
			maps.Copy(annotations, c.annotations)
			patch(t, w, action.Patch{Body: body{"metadata": body{"labels": body{contract.RevisionLabel: "web-2"}, "annotations": annotations}}})
			patch(t, w, gate("True"))
			if !c.violated {
				assert.Empty(t, w.Violations())
				return
			}
			require.Len(t, w.Violations(), 1)
			assert.Contains(t, w.Violations()[0], "container main has not been restarted")
		})
	}
}
