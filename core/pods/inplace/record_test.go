package inplace

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"

	"github.com/flotilla-project/flotilla/core/pods/inplace/completion"
	"github.com/flotilla-project/flotilla/core/pods/inplace/running"
)

// A batch is one entry of the record: that its resizes go ahead of its restarts, or after them, is no batch.
func TestABatchIsOneEntryOfTheRecord(t *testing.T) {
	of := func(change func(t *corev1.PodTemplateSpec)) (v1, v2 *Revision) {
		v1 = revisionOf("w-1", variant(templateOf("first", "second"), func(t *corev1.PodTemplateSpec) {
			for i := range t.Spec.Containers {
				t.Spec.Containers[i].Resources.Requests = quantities("1", "")
			}
		}))
		return v1, revisionOf("w-2", variant(v1.Template, change))
	}
	both := func(t *corev1.PodTemplateSpec) {
		for i := range t.Spec.Containers {
			t.Spec.Containers[i].Image += "2"
			t.Spec.Containers[i].Resources.Requests = quantities("2", "")
		}
	}
	firstBoth := func(t *corev1.PodTemplateSpec) {
		both(t)
		t.Spec.Containers[1].Resources.Requests = quantities("1", "")
	}
	resizeOfFirst := func(t *corev1.PodTemplateSpec) {
		both(t)
		t.Spec.Containers[0].Image = "first:v1"
	}
	ordered := map[string]string{"first": "p_10", "second": "p_0"}
	for name, tt := range map[string]struct {
		change     func(*corev1.PodTemplateSpec)
		priorities map[string]string
		down       string
		want       [][]string
	}{
		"both at once":                        {change: both, want: [][]string{{"first", "second"}}},
		"both, of which one is resized":       {change: firstBoth, want: [][]string{{"first", "second"}}},
		"one after the other":                 {change: both, priorities: ordered, want: [][]string{{"first"}, {"second"}}},
		"one after the other, one resized":    {change: firstBoth, priorities: ordered, want: [][]string{{"first"}, {"second"}}},
		"the first is only resized":           {change: resizeOfFirst, priorities: ordered, want: [][]string{{"first"}, {"second"}}},
		"one that has none, and one priority": {change: both, priorities: map[string]string{"first": "p_10"}, want: [][]string{{"first", "second"}}},
		"resized when it runs again":          {change: both, priorities: ordered, down: "first", want: [][]string{{"first"}, {"second"}}},
	} {
		t.Run(name, func(t *testing.T) {
			v1, v2 := of(tt.change)
			pod := prioritised(runningPod(v1.Template, "w-1"), tt.priorities)
			if tt.down != "" {
				running.Status(pod, tt.down).State = corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "CrashLoopBackOff"}}
			}
			pod = written(t, begin(t, pod, v1, v2, 0, at(0)))
			var p completion.Progress
			for i := 1; !p.Complete; i++ {
				require.Less(t, i, 20, "%+v", p)
				for _, name := range []string{"first", "second"} {
					if status := running.Status(pod, name); status.Image != running.Container(pod, name).Image {
						restarted(pod, name, name+"-1")
					}
				}
				pod, p, _ = refresh(t, resized(pod), at(time.Duration(i)*time.Second))
			}
			var got [][]string
			for _, b := range stateOf(t, pod).ContainerBatchesRecord {
				got = append(got, b.Containers)
			}
			assert.Equal(t, tt.want, got)
		})
	}
}

// The moment of an entry is that of its last write: what is concluded from how long ago a container changed, counts from then.
func TestTheEntryHasTheMomentOfItsLastWrite(t *testing.T) {
	v1, v2 := grown()
	pod := written(t, begin(t, runningPod(v1.Template, "w-1"), v1, v2, 0, at(0)))
	assert.Equal(t, noon, stateOf(t, pod).ContainerBatchesRecord[0].Timestamp.UTC())
	pod, _, _ = refresh(t, resized(pod), at(time.Minute))
	require.Len(t, stateOf(t, pod).ContainerBatchesRecord, 1)
	assert.Equal(t, noon.Add(time.Minute), stateOf(t, pod).ContainerBatchesRecord[0].Timestamp.UTC())
}
