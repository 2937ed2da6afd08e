package forecast_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"

	"github.com/flotilla-project/flotilla/cloneset/api/v1beta1"

	"github.com/flotilla-project/flotilla/kustomize/forecast"
	"github.com/flotilla-project/flotilla/kustomize/test/scenes"
	"github.com/flotilla-project/flotilla/kustomize/workload"
)

func TestTheRestOfARollout(t *testing.T) {
	recreated := func(s *v1beta1.CloneSet) {
		scenes.NewImage(s)
		s.Spec.UpdateStrategy.RollingUpdate.PodUpdatePolicy = v1beta1.ReCreate
	}
	stuck := func(s *v1beta1.CloneSet) {
		scenes.NewImage(s)
		s.Spec.UpdateStrategy.RollingUpdate.Paused = true
	}
	for name, c := range map[string]struct {
		edit               func(*v1beta1.CloneSet)
		after, start, then time.Duration
		known              bool
	}{
		"in place, at its pace":         {scenes.NewImage, 40 * time.Second, 10 * time.Second, 10 * time.Second, true},
		"recreated, at its pace":        {recreated, 45 * time.Second, 10 * time.Second, 10 * time.Second, true},
		"the first batches say nothing": {scenes.NewImage, 20 * time.Second, 10 * time.Second, 10 * time.Second, false},
		"slower than the pods were":     {scenes.NewImage, 2 * time.Minute, 10 * time.Second, 50 * time.Second, false},
		"it stops":                      {stuck, 40 * time.Second, 10 * time.Second, 10 * time.Second, false},
	} {
		t.Run(name, func(t *testing.T) {
			scene := scenes.Underway(t, scenes.Web, c.edit, c.after, c.start, c.then)
			report, err := forecast.Play(t.Context(), scene, forecast.Edit{})
			require.NoError(t, err)
			left, known := forecast.Remaining(scene, report)
			assert.Equal(t, c.known, known)
			if c.known {
				end := lastReady(scenes.Underway(t, scenes.Web, c.edit, time.Hour, c.start, c.then).Pods)
				assert.InDelta(t, end.Sub(scene.Now).Seconds(), left.Seconds(), 2)
			}
		})
	}
}

func lastReady(pods []*corev1.Pod) (last time.Time) {
	for _, pod := range pods {
		if at := workload.PodCondition(pod, corev1.PodReady).LastTransitionTime.Time; at.After(last) {
			last = at
		}
	}
	return last
}

func TestTheWordsOfTheTimeThatIsLeft(t *testing.T) {
	for left, want := range map[time.Duration]string{
		time.Second:       "about 10 seconds to go",
		34 * time.Second:  "about 30 seconds to go",
		89 * time.Second:  "about 90 seconds to go",
		100 * time.Second: "about 2 minutes to go",
		time.Hour:         "about 60 minutes to go",
	} {
		assert.Equal(t, want, forecast.ToGo(left))
	}
}
