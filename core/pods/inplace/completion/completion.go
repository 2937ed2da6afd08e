package completion

import (
	"time"

	corev1 "k8s.io/api/core/v1"
)

// How a container is known to run its wanted image.
//
// Wanted is proof that neither hangs nor comes early, from a status that may be late and that names images as the
// runtime likes. The kubelet replaces a container whenever the text of its image changes, and reports by
// observedGeneration which spec a status is about. So nothing is concluded before observedGeneration has reached the
// pod's generation (where it is reported). After that
//
//  1. the recorded container is still shown: not replaced yet, whatever its image is called;
//  2. another one is shown, and its image ID differs from the recorded one: it can only be the
//     wanted one, because an image ID is recorded only when no other change was on its way;
//  3. another one is shown with a name or digest that is the wanted one, or the node agent has found
//     the wanted spec's hash on it: it is the wanted one;
//  4. another one is shown with the old image ID under another name: either two names of one image, or the old
//     container has crashed and was restarted just before the kubelet saw the change. The latter is replaced at once,
//     so that a container that is ready after SettleTime is the former. One that is not ready is given UnsureTime: it
//     may crash again, and its status stays as it is if its node fails before the kubelet replaces it. One that is down
//     and does not crash waits for its wanted image, however long that cannot be pulled.
//
// Of a native sidecar that runs nothing is concluded before it has passed its startup probe either: the kubelet does not
// look at its image until then, and may still replace it, or keep it if the image changes back.
//
// Without a recorded container ID there is no old container to compare with: the old one was down, or an earlier change
// was on its way. Rules 2 and 3 hold for a container that runs; rule 4 waits for UnsureTime, because restarts of the
// old image and slow pulls of the one in between are likely then. Nor do states that OpenKruise wrote name a container:
// with them an image ID that differs or a wanted name is proof, and a container that still runs after UnsureTime, if
// the kubelet reports that it has observed the spec. So no naming can block an update permanently.

// The waits before something is concluded.
const (
	// SettleTime is how long a container that is ready is not believed to be the wanted one (rule 4).
	SettleTime = 10 * time.Second
	// ReadTime is how long after a write to the metadata a container may still be started with the metadata that the
	// kubelet saw before. This happens to a container that has crashed and has no successor in the status yet. The node
	// agent takes no less for a restart.
	ReadTime = 5 * time.Second
	// UnsureTime is how long nothing is concluded from a container that may still be the old one (rule 4).
	UnsureTime = 2 * time.Minute
)

// Observed reports whether the status is about the present spec, as far as the kubelet reports.
func Observed(pod *corev1.Pod) bool {
	return pod.Status.ObservedGeneration == 0 || pod.Status.ObservedGeneration >= pod.Generation
}
