package forecasts

import (
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/flotilla-project/flotilla/kustomize/cli"
	"github.com/flotilla-project/flotilla/kustomize/forecast"
	"github.com/flotilla-project/flotilla/kustomize/progress"

	"github.com/flotilla-project/flotilla/test/story"
)

// Rollout is an edit that was foretold, and then made.
type Rollout struct {
	Forecast *forecast.Report

	recorder *recorder
}

// Edit reads the forecast of an edit of a workload at rest, with further arguments of flotilla simulate, makes the edit, and
// records the pods until the returned rollout is compared with the forecast.
func Edit[T client.Object](t *testing.T, w story.World, set T, change func(T), args ...string) *Rollout {
	t.Helper()
	require.NoError(t, w.Client.Get(t.Context(), client.ObjectKeyFromObject(set), set))
	edited := set.DeepCopyObject().(T)
	change(edited)
	f, code := of(t, w, set, edited, args...)
	assert.Equal(t, f.Holds(), code == cli.Done, "exit code is %d", code)
	assert.Empty(t, f.Assumed)
	r := &Rollout{Forecast: f, recorder: newRecorder(t, w, edited)}
	story.Edit(t, w, set, change)
	return r
}

// ComesTrue ends the record at the end of the rollout, and compares it with the forecast.
func (r *Rollout) ComesTrue(t *testing.T) {
	t.Helper()
	f := r.Forecast
	got, took := r.recorder.end()
	t.Logf("forecast of %s %s: %s after %.1f s, took %.1f s", f.Kind, f.Name, f.Phase, f.Seconds, took.Round(time.Millisecond).Seconds())
	want := promised(f)
	if f.Recreated > 0 && f.Added > 0 { // pods in new places may be ready before those in old ones go
		assert.GreaterOrEqual(t, got.Lowest, want.Lowest, "available pods")
		want.Lowest = got.Lowest
	}
	switch {
	case refuses(f) && f.Phase == progress.Failed: // chance decides which of the pods that are changed together a budget lets go
		assert.Len(t, got.Order, len(want.Order))
		want.Order = got.Order
	case refuses(f) || !oneByOne(f):
		slices.Sort(want.Order)
		slices.Sort(got.Order)
	}
	assert.Equal(t, want, got, "%s", f.Message)
}

// atOnce is within how many seconds after the edit the first pod changes if nothing has to be waited for.
const atOnce = 1

// promised is the record that a forecast promises.
func promised(f *forecast.Report) record {
	r := record{
		InPlace:   f.InPlace,
		Recreated: f.Recreated,
		Added:     f.Added,
		Removed:   f.Removed,
		Lowest:    f.LowestAvailable,
		Most:      f.MostPods,
	}
	for _, b := range f.Batches {
		r.Order = append(r.Order, b.Pods...)
	}
	return r
}

// oneByOne reports whether each pod is updated or deleted alone, from the moment of the edit on. Others have no order: if the update
// first waits until a time is over, such as the patience with a node agent, that time ends for each pod at its own moment.
func oneByOne(f *forecast.Report) bool {
	if len(f.Batches) > 0 && f.Batches[0].Seconds > atOnce {
		return false
	}
	for _, b := range f.Batches {
		if len(b.Pods) > 1 {
			return false
		}
	}
	return true
}

// refuses reports whether a budget refuses the change of a pod.
func refuses(f *forecast.Report) bool {
	for _, b := range f.Budgets {
		if b.Refused > 0 {
			return true
		}
	}
	return false
}
