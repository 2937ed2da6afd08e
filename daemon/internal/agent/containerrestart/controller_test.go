package containerrestart

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/flotilla-project/flotilla/core/plan/action"
	"github.com/flotilla-project/flotilla/core/plan/progress"

	"github.com/flotilla-project/flotilla/daemon/api/v1beta1"
	"github.com/flotilla-project/flotilla/daemon/internal/recreate/node"

	"github.com/flotilla-project/flotilla/daemon/internal/agent/containerstop"
	"github.com/flotilla-project/flotilla/daemon/internal/agent/cri"
	"github.com/flotilla-project/flotilla/daemon/internal/agent/stops"
)

// quick ends every hook at once.
type quick struct{ stops.Stopper }

func (quick) Hook(context.Context, containerstop.Request) (time.Duration, error) {
	return time.Second, nil
}

// empty is a server without objects.
type empty struct{ client.Reader }

func (empty) Get(_ context.Context, key client.ObjectKey, _ client.Object, _ ...client.GetOption) error {
	return apierrors.NewNotFound(schema.GroupResource{}, key.Name)
}

// A stop whose request is gone after its hook is given up, and nothing is left of it.
func TestAStopWhoseRequestIsGoneIsGivenUp(t *testing.T) {
	key := types.NamespacedName{Namespace: "shop", Name: "uid-1"}
	all := stops.New(quick{}, clock.RealClock{}, nil)
	passes := NewPasses(Sources{
		Active: func(context.Context, types.NamespacedName) ([]*v1beta1.ContainerRecreateRequest, error) {
			return nil, nil
		},
		Live:     empty{},
		Refusals: func(client.Object, time.Time) action.Refusals { return action.Refusals{} },
		Clock:    clock.RealClock{},
	}, all, func(context.Context, types.NamespacedName) {})
	request := &v1beta1.ContainerRecreateRequest{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "r", UID: "r"}}
	passes.hook(t.Context(), key, &node.Kill{Request: request, ContainerID: "containerd://c1"}, []cri.Container{{ID: "containerd://c1"}})
	all.Wait()
	require.Equal(t, node.AfterHook, all.Of(key)["containerd://c1"].Stage)

	pass, err := passes.Look(t.Context(), key)
	require.NoError(t, err)
	assert.Positive(t, pass.Plan.RequeueAfter, "the next pass forgets the pod")
	pass.Do(t.Context(), func() progress.Result { return progress.Result{} })
	assert.Empty(t, all.Of(key))
	_, err = passes.Look(t.Context(), key)
	assert.True(t, apierrors.IsNotFound(err), "%v", err)
	passes.Forget(key)
	assert.Empty(t, passes.memory.pods)
}
