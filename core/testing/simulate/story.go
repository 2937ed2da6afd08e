package simulate

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"

	"github.com/flotilla-project/flotilla/core/plan/action"
	"github.com/flotilla-project/flotilla/core/plan/progress"
)

// UpdateGolden is the environment variable that makes CompareStory write its file if it is 1.
const UpdateGolden = "UPDATE_GOLDEN"

// Tell adds a line to the story.
func (w *World) Tell(actor, format string, args ...any) {
	at := "t=" + w.now.Sub(w.begin).Truncate(time.Second).String()
	w.story = append(w.story, fmt.Sprintf("%-8s %-9s %s", at, actor, fmt.Sprintf(format, args...)))
}

// Story returns what has happened so far, one line for each action of the operator and each change in the life cycle of
// a pod. The same seed gives the same story.
func (w *World) Story() string { return strings.Join(w.story, "\n") + "\n" }

// CompareStory compares the story with the file, such as testdata/rollout.txt.
func CompareStory(t testing.TB, w *World, path string) {
	t.Helper()
	if os.Getenv(UpdateGolden) == "1" {
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
		require.NoError(t, os.WriteFile(path, []byte(w.Story()), 0o644))
	}
	want, err := os.ReadFile(path)
	require.NoError(t, err, "%s=1 writes it", UpdateGolden)
	require.Equal(t, string(want), w.Story(), "%s=1 writes it anew", UpdateGolden)
}

// tellResult adds an action of the operator and its outcome to the story. It leaves out writes of the workload's
// status, which only repeat them.
func (w *World) tellResult(r *progress.Outcome) {
	a := r.Action
	if _, isPod := a.Object.(*corev1.Pod); a.Verb == action.PatchStatus && !isPod {
		return
	}
	text := sentence(a)
	switch r.State {
	case progress.Done:
	case progress.Stale:
		text += " [stale]"
	default:
		text += " [" + r.Err.Error() + "]"
	}
	w.Tell(OperatorActor, "%s", text)
}

// sentence returns the action in words.
func sentence(a *action.Action) string {
	words := map[action.Verb]string{
		action.Create: "create %s", action.Delete: "delete %s", action.Adopt: "adopt %s", action.Release: "release %s",
		action.PatchMetadata: "label %s", action.PatchStatus: "mark %s", action.PatchSpec: "change %s",
		action.UpdateInPlace: "update %s in place",
	}
	text := fmt.Sprintf(words[a.Verb], strings.ToLower(KindOf(a.Object))+" "+a.Object.GetName())
	if a.Reason != "" {
		text += " (" + a.Reason + ")"
	}
	if a.Message != "" {
		text += ": " + a.Message
	}
	return text
}

// narrate adds changes in the life cycle of a pod that are not made by the operator to the story.
func (w *World) narrate(e Event) {
	pod, ok := e.Object.(*corev1.Pod)
	if !ok {
		return
	}
	old, _ := e.Old.(*corev1.Pod)
	switch {
	case e.Type == Deleted:
		w.Tell(e.Actor, "pod %s is gone", pod.Name)
	case old == nil || e.Actor == OperatorActor:
	case e.Actor == CollectorActor && old.DeletionTimestamp == nil && pod.DeletionTimestamp != nil:
		w.Tell(e.Actor, "pod %s has lost its owner", pod.Name)
	case old.Spec.NodeName != pod.Spec.NodeName:
		w.Tell(e.Actor, "pod %s goes to %s", pod.Name, pod.Spec.NodeName)
	case isTrue(pod, corev1.PodReady) != isTrue(old, corev1.PodReady):
		if isTrue(pod, corev1.PodReady) {
			w.Tell(e.Actor, "pod %s is ready", pod.Name)
		} else {
			w.Tell(e.Actor, "pod %s is not ready", pod.Name)
		}
	case e.Actor == KubeletActor && trouble(pod) != "" && trouble(pod) != trouble(old):
		w.Tell(e.Actor, "pod %s: %s", pod.Name, trouble(pod))
	}
}

// trouble returns a container that waits with its reason, unless it only waits for its creation; empty if there is
// none.
func trouble(pod *corev1.Pod) string {
	for i := range pod.Status.ContainerStatuses {
		s := &pod.Status.ContainerStatuses[i]
		if s.State.Waiting != nil && s.State.Waiting.Reason != "ContainerCreating" {
			return s.Name + " " + s.State.Waiting.Reason
		}
	}
	return ""
}
