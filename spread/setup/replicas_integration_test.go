package setup

import (
	"context"
	"fmt"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/flotilla-project/flotilla/core/operator/admission"
	"github.com/flotilla-project/flotilla/core/operator/features"

	"github.com/flotilla-project/flotilla/core/operator/manager"
	"github.com/flotilla-project/flotilla/core/testing/testenv"
	"github.com/flotilla-project/flotilla/core/testing/testenv/operators"
	"github.com/flotilla-project/flotilla/spread/internal/featuregates"
)

// Two replicas behind one address, of which the first leads, while pods come and go at the same time: the first subset
// is never above its limit, and gets back what it has lost.
func TestTwoReplicasShareThePlaces(t *testing.T) {
	const limit, pods, leaving = 10, 40, 6
	c := servedBy(t, 2, env)
	namespace := env.Namespace(t)
	owner, s := newReplicaSet(namespace, pods), newSpread(namespace, intstr.FromInt32(limit))
	require.NoError(t, c.Create(t.Context(), owner))
	require.NoError(t, c.Create(t.Context(), s))
	settled(t, c, s, "0/10 0/-1")
	assert.Equal(t, map[string]int{"a": limit, "b": pods - limit}, create(t, c, owner, pods))
	settled(t, c, s, "10/0 30/-1")

	var all sync.WaitGroup
	var got map[string]int
	gone := inSubset(podsOf(t, c, namespace), "a")[:leaving]
	all.Go(func() { got = create(t, c, owner, pods) })
	for i := range gone {
		all.Go(func() { assert.NoError(t, c.Delete(t.Context(), &gone[i], client.GracePeriodSeconds(0))) })
	}
	all.Wait()
	assert.LessOrEqual(t, got["a"], leaving)
	left := limit - leaving + got["a"]
	assert.Len(t, inSubset(podsOf(t, c, namespace), "a"), left)
	settled(t, c, s, fmt.Sprintf("%d/%d %d/-1", left, limit-left, pods-limit+got["b"]))
	assert.Equal(t, limit-left, create(t, c, owner, leaving+1)["a"], "as many as there are places")
}

// servedBy is serving with so many replicas that answer admission in turn, and that reach the server in their own way; only
// the first has controllers.
func servedBy(t testing.TB, replicas int, over testenv.Environment) client.Client {
	t.Helper()
	installed(t)
	var mutating, validating [][]admission.Endpoint
	var leading *manager.Environment
	var all manager.Webhooks
	for i := range replicas {
		s, environment := replica(t, over, "", features.Defaults(featuregates.All()...))
		hooks, err := s.webhooks(t.Context(), environment)
		require.NoError(t, err)
		mutating, validating = append(mutating, hooks.Mutating), append(validating, hooks.Validating)
		if i == 0 {
			leading, all = environment, hooks
			require.NoError(t, s.setup(t.Context(), environment))
		} else {
			env.Start(t, environment.Manager)
		}
	}
	all.Mutating, all.Validating = operators.InTurn(mutating...), operators.InTurn(validating...)
	all.Register(leading.Manager.GetWebhookServer())
	env.Start(t, leading.Manager)
	return again{env.Client(t)}
}

// again creates pods as controllers of workloads do: again, if the webhook has no place to give now.
type again struct{ client.Client }

func (a again) Create(ctx context.Context, o client.Object, opts ...client.CreateOption) error {
	for {
		if err := a.Client.Create(ctx, o, opts...); !apierrors.IsServiceUnavailable(err) {
			return err
		}
	}
}

// inSubset returns the pods that are in the subset.
func inSubset(pods []corev1.Pod, subset string) (found []corev1.Pod) {
	for i := range pods {
		if subsetOf(&pods[i]) == subset {
			found = append(found, pods[i])
		}
	}
	return found
}
