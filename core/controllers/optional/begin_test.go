package optional_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	authorizationv1 "k8s.io/api/authorization/v1"
	clocktesting "k8s.io/utils/clock/testing"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/flotilla-project/flotilla/core/controllers/optional"
	"github.com/flotilla-project/flotilla/core/testing/await"
)

// runs is a manager that keeps what is added to it.
type runs struct {
	ctrl.Manager
	added []manager.Runnable
}

func (r *runs) Add(runnable manager.Runnable) error {
	r.added = append(r.added, runnable)
	return nil
}

func TestAControllerBeginsAtOnceOrLater(t *testing.T) {
	silent := errors.New("no answer")
	ticks := clocktesting.NewFakeClock(time.Unix(0, 0))
	looks, with := 0, 0
	var over func() bool
	begin := func(ready func() (bool, error)) (*runs, error) {
		looks, with, over = 0, 0, nil
		mgr := &runs{}
		return mgr, optional.Begin(t.Context(), mgr, optional.Beginning{
			Ready:   func(context.Context) (bool, error) { looks++; return ready() },
			Without: func(_ context.Context, o func() bool) error { over = o; return nil },
			With:    func(context.Context) error { with++; return nil },
			Clock:   ticks,
		})
	}
	mgr, err := begin(func() (bool, error) { return true, nil })
	require.NoError(t, err)
	assert.Equal(t, []any{1, true, 0}, []any{with, over == nil, len(mgr.added)}, "all is there")

	_, err = begin(func() (bool, error) { return false, silent })
	require.ErrorIs(t, err, silent)

	mgr, err = begin(func() (bool, error) {
		if looks == 3 {
			return false, silent
		}
		return looks > 3, nil
	})
	require.NoError(t, err)
	require.Len(t, mgr.added, 1)
	assert.Equal(t, []any{0, false}, []any{with, over()})
	done := make(chan error)
	go func() { done <- mgr.added[0].Start(t.Context()) }()
	for range 2 {
		await.Until(t, func(check *assert.CollectT) { assert.True(check, ticks.HasWaiters()) })
		ticks.Step(time.Minute)
	}
	require.NoError(t, <-done)
	assert.Equal(t, []any{4, 1, true}, []any{looks, with, over()}, "a failed look is repeated")

	mgr, err = begin(func() (bool, error) { return false, nil })
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	require.NoError(t, mgr.added[0].Start(ctx))
	assert.Equal(t, []any{0, false}, []any{with, over()}, "the manager has ended first")

	mgr = &runs{}
	require.NoError(t, optional.Begin(t.Context(), mgr, optional.Beginning{Ready: func(context.Context) (bool, error) { return false, nil }}))
	assert.Len(t, mgr.added, 1, "nothing runs without what it needs")
}

// reviewer answers reviews of what the process itself may do.
type reviewer struct {
	client.Writer
	allows map[string]bool
	err    error
	asked  int
}

func (r *reviewer) Create(_ context.Context, o client.Object, _ ...client.CreateOption) error {
	r.asked++
	review := o.(*authorizationv1.SelfSubjectAccessReview)
	review.Status.Allowed = r.allows[review.Spec.ResourceAttributes.Verb]
	return r.err
}

func TestRightsAreAskedForAgainAndNotAllTheTime(t *testing.T) {
	now := clocktesting.NewFakePassiveClock(time.Unix(0, 0))
	after := func(d time.Duration) { now.SetTime(now.Now().Add(d)) }
	server := &reviewer{err: errors.New("no answer")}
	a := &optional.Access{Rights: optional.Rights{Resource: "secrets", Verbs: []string{"list", "watch"}}, Client: server, Clock: now}
	assert.Equal(t, []string{"list", "watch"}, a.Lacking(t.Context()), "what is not known is not there")

	server.err, server.allows = nil, map[string]bool{"list": true}
	after(5 * time.Second)
	assert.Equal(t, []string{"watch"}, a.Lacking(t.Context()))
	server.allows["watch"] = true
	asked := server.asked
	assert.Equal(t, []string{"watch"}, a.Lacking(t.Context()))
	assert.Equal(t, asked, server.asked, "the answer is new")
	after(5 * time.Second)
	assert.Empty(t, a.Lacking(t.Context()))

	server.err = errors.New("no answer")
	after(time.Minute)
	assert.Empty(t, a.Lacking(t.Context()), "what was known last counts")
	server.err, server.allows = nil, nil
	after(time.Minute)
	assert.Equal(t, []string{"list", "watch"}, a.Lacking(t.Context()))
}
