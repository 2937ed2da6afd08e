package marks

import (
	"context"
	"testing"

	"github.com/stretchr/testify/assert"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/flotilla-project/flotilla/core/testing/await"

	"github.com/flotilla-project/flotilla/budget/api/v1beta1"
	"github.com/flotilla-project/flotilla/budget/internal/wakeups"
)

// Pods of a new budget are protected from their mark on: they do not wait for the target of another budget.
func TestABudgetWithASlowTargetDelaysNoOther(t *testing.T) {
	answered := make(chan struct{})
	wake := wakeups.New(func(_ context.Context, budget types.NamespacedName) ([]reconcile.Request, error) {
		if budget.Name == "slow" {
			<-answered
		}
		return []reconcile.Request{{NamespacedName: budget}}, nil
	})
	ctx, end := context.WithCancel(t.Context())
	ended := make(chan error)
	go func() { ended <- wake.Run(ctx) }()
	queue := workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[reconcile.Request]())
	defer queue.ShutDown()
	handler := budgetEvents(wake)
	named := func(name string) client.Object {
		b := &v1beta1.PodUnavailableBudget{}
		b.Name = name
		return b
	}
	handler.Generic(ctx, event.GenericEvent{Object: named("slow")}, queue)
	handler.Create(ctx, event.CreateEvent{Object: named("created")}, queue)
	handler.Update(ctx, event.UpdateEvent{ObjectOld: named("changed"), ObjectNew: named("changed")}, queue)
	handler.Delete(ctx, event.DeleteEvent{Object: named("deleted")}, queue)
	var woken []string
	for range 3 {
		next, _ := queue.Get()
		woken = append(woken, next.Name)
	}
	assert.ElementsMatch(t, []string{"created", "changed", "deleted"}, woken)
	close(answered)
	next, _ := queue.Get()
	assert.Equal(t, "slow", next.Name)
	end()
	assert.NoError(t, await.Receive(t, ended, "the lookups end"))
}

func TestPodsAreMarkedAnewWhereTheMarkIsAnother(t *testing.T) {
	pod := func(name, mark string) *corev1.Pod {
		p := &corev1.Pod{}
		p.Name, p.UID = name, types.UID(name)
		if mark != "" {
			p.Annotations = map[string]string{v1beta1.RelatedAnnotation: mark}
		}
		return p
	}
	var names []string
	right, left := pod("right", "web"), pod("left", "web")
	for _, p := range unlike("web", []*corev1.Pod{right, pod("new", ""), pod("others", "db")}, []*corev1.Pod{right, left}) {
		names = append(names, p.Name)
	}
	assert.ElementsMatch(t, []string{"new", "others", "left"}, names)
}

// A target that cannot be read for long has a condition: it is not asked for again and again.
func TestLookupsThatAreRepeated(t *testing.T) {
	crew := &v1beta1.TargetReference{APIVersion: "example.com/v1", Kind: "Crew", Name: "web"}
	deployment := &v1beta1.TargetReference{APIVersion: "apps/v1", Kind: "Deployment", Name: "web"}
	absent := apierrors.NewNotFound(schema.GroupResource{Resource: "crews"}, "web")
	forbidden := apierrors.NewForbidden(schema.GroupResource{Resource: "crews"}, "web", nil)
	slow := apierrors.NewTimeoutError("too slow", 1)
	for name, test := range map[string]struct {
		target *v1beta1.TargetReference
		err    error
		lasts  bool
	}{
		"no error":                          {crew, nil, false},
		"no target":                         {deployment, absent, true},
		"a kind that must not be read":      {crew, forbidden, true},
		"a kind that the roles allow":       {deployment, forbidden, false},
		"a server that is slow":             {crew, slow, false},
		"a server that is slow, a selector": {nil, slow, false},
	} {
		t.Run(name, func(t *testing.T) { assert.Equal(t, test.lasts, lasts(test.target, test.err)) })
	}
}
