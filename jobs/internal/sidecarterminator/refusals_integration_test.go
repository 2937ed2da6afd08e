package sidecarterminator_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	corev1 "k8s.io/api/core/v1"

	"github.com/flotilla-project/flotilla/core/testing/testenv/faults"
)

// A server that refuses requests, images and phases hears little of the controller, however much happens to the pods,
// and what was wanted happens soon after.
func TestARefusedControllerIsQuiet(t *testing.T) {
	givenRequests(t)
	faults.EachRefusal(t, func(t *testing.T, f *faults.Refusing) {
		t.Helper()
		namespace := env.Namespace(t)
		f.For, f.Of = 11*time.Second, func(r *http.Request) bool {
			return faults.IsWrite(r) && strings.Contains(r.URL.Path, "/"+namespace+"/") && !strings.Contains(r.URL.Path, "/events")
		}
		c := givenControllerOf(t, faults.Over(env, f.Send), namespace)
		named := func(name string) func(*corev1.Pod) { return func(pod *corev1.Pod) { pod.Name = name } }
		stops := givenPod(t, c, namespace, realNode, vars(stopped()), nil, named("stops"))
		decides := givenPod(t, c, namespace, realNode, vars(stopped(), ignored()), nil, named("decides"))
		replaces := givenPod(t, c, namespace, virtual, vars(quickExit()), nil, named("replaces"))
		for _, pod := range []*corev1.Pod{stops, decides, replaces} {
			exit(t, c, pod, "mesh", 0)
			exit(t, c, pod, "main", 0)
		}
		for message := ""; !f.Over(); message += "." {
			for _, pod := range []*corev1.Pod{stops, decides, replaces} {
				report(t, c, pod, func(s *corev1.PodStatus) { s.Message = message })
			}
			<-time.After(200 * time.Millisecond)
		}
		requested(t, c, stops, "", "log")
		phaseBecomes(t, c, decides, corev1.PodSucceeded)
		imageBecomes(t, c, replaces, "log", "quick-exit:1")
		requested(t, c, decides, "-ignore", "log")
		assert.Equal(t, 3, f.AssertQuiet(t, 1), "a request, a phase and an image")
	})
}
