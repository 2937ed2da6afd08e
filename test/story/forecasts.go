package story

import (
	"context"
	"regexp"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"

	"github.com/flotilla-project/flotilla/core/testing/foretold"
)

// ForecastsComeTrue patches the template of a workload that updates pods in place where it can: a label, the image of its only
// container main, and a port. Each patch is tried first, with a server-side dry run. The pods show the effect that the warning
// about it names. Settles waits for the end of the rollout.
func (w World) ForecastsComeTrue(t *testing.T, namespace, target, image string, settles func()) {
	t.Helper()
	for _, patch := range []string{
		`{"metadata":{"labels":{"tier":"front"}}}`,
		`{"spec":{"containers":[{"name":"main","image":"` + image + `"}]}}`,
		`{"spec":{"containers":[{"name":"main","image":"` + image + `","ports":[{"containerPort":81}]}]}}`,
	} {
		settles()
		pods, err := w.pods(t.Context(), namespace)
		require.NoError(t, err)
		before := foretold.Portray(pointers(pods))
		merge := []string{"-n", namespace, "patch", target, "--type=merge", "--patch", `{"spec":{"template":` + patch + `}}`}
		tried, err := w.Kubectl(t, "", append(merge, "--dry-run=server")...)
		require.NoError(t, err, tried)
		done, err := w.Kubectl(t, "", merge...)
		require.NoError(t, err, done)
		assert.Equal(t, warningsIn(tried), warningsIn(done), patch)
		w.comesTrue(t, namespace, before, warningsIn(done))
	}
}

// warningsIn are the warnings in the output of kubectl.
func warningsIn(out string) []string {
	var all []string
	for _, match := range regexp.MustCompile("(?m)^Warning: (.*)$").FindAllStringSubmatch(out, -1) {
		all = append(all, match[1])
	}
	return all
}

func pointers(pods []corev1.Pod) []*corev1.Pod {
	var all []*corev1.Pod
	for i := range pods {
		all = append(all, &pods[i])
	}
	return all
}

// comesTrue waits until the pods show the effect that the only warning names.
func (w World) comesTrue(t *testing.T, namespace string, before foretold.Portrait, warnings []string) {
	t.Helper()
	require.Len(t, warnings, 1)
	want := foretold.By(warnings[0])
	require.NotZero(t, want.Recreated+want.InPlace, warnings[0])
	Eventually(t, "that it comes true: "+warnings[0], func(ctx context.Context) error {
		pods, err := w.pods(ctx, namespace)
		if err != nil {
			return err
		}
		got := before.Until(pointers(pods))
		return Want(got == want, "instead of %+v there is %+v", want, got)
	})
}
