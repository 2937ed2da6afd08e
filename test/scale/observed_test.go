package scale

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"
)

func TestPodsAreObserved(t *testing.T) {
	now := time.Unix(0, 0)
	o := newObserved(func() time.Time { return now })
	see := o.handler()
	pod := func(i int, ready corev1.ConditionStatus) *corev1.Pod {
		return &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{UID: types.UID(fmt.Sprint(i))},
			Status:     corev1.PodStatus{Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: ready}}},
		}
	}
	o.begin(0)
	for i := range 100 {
		see.OnAdd(pod(i, corev1.ConditionFalse), false)
	}
	for i := range 100 {
		now = now.Add(time.Second)
		see.OnUpdate(nil, pod(i, corev1.ConditionTrue))
	}
	median, p90, p99 := o.toReady()
	assert.Equal(t, 51*time.Second, median)
	assert.Equal(t, 91*time.Second, p90)
	assert.Equal(t, 100*time.Second, p99)

	o.begin(100)
	see.OnUpdate(nil, pod(1, corev1.ConditionFalse))
	see.OnDelete(cache.DeletedFinalStateUnknown{Obj: pod(2, corev1.ConditionTrue)})
	now = now.Add(10 * time.Second)
	see.OnUpdate(nil, pod(1, corev1.ConditionTrue))
	now = now.Add(10 * time.Second)
	share, most := o.used(2)
	assert.InDelta(t, 0.75, share, 0.001, "two of two for ten seconds, then one")
	assert.Equal(t, 2, most)
}

// What a status says was true until the number of ready pods changed.
func TestAStatusIsAsOldAsWhatItSays(t *testing.T) {
	now := time.Unix(0, 0)
	at := func(second int) time.Time { return now.Add(time.Duration(second) * time.Second) }
	var a statusAge
	a.begin()
	a.becomes(1, at(1))
	a.becomes(2, at(2))
	a.says(0, at(3))
	assert.Equal(t, 2*time.Second, a.oldest, "there was no pod until the first second")
	a.says(1, at(4))
	assert.Equal(t, 3*time.Second, a.oldest)
	a.says(2, at(5))
	assert.Equal(t, 3*time.Second, a.oldest, "of a single pod it was three seconds")
	assert.Zero(t, a.age(at(60)), "two are ready")
	a.says(3, at(61))
	assert.Zero(t, a.age(at(62)), "the third is about to be seen")
	a.begin()
	assert.Zero(t, a.oldest)
}
