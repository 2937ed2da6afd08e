package simnodes

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/flotilla-project/flotilla/core/pods/podspec"
)

// podRun is what a node remembers of one pod besides the API object.
type podRun struct {
	uid     types.UID
	ip      string
	started time.Time
	inits   []container
	mains   []container
	// written is the pod as the last write left it, possibly newer than the cache.
	written *corev1.Pod
	// deletedAt is when the node saw the deletion.
	deletedAt time.Time
}

// newPodRun continues the pod from its status, so that a restarted simulation restarts no container.
func newPodRun(pod *corev1.Pod, ip string, now time.Time) *podRun {
	r := &podRun{uid: pod.UID, ip: ip, started: now}
	if pod.Status.PodIP != "" {
		r.ip = pod.Status.PodIP
	}
	if pod.Status.StartTime != nil {
		r.started = pod.Status.StartTime.Time
	}
	r.inits = adopt(pod.Spec.InitContainers, pod.Status.InitContainerStatuses)
	for i := range r.inits {
		r.inits[i].final(podspec.IsSidecar(&pod.Spec.InitContainers[i]))
	}
	r.mains = adopt(pod.Spec.Containers, pod.Status.ContainerStatuses)
	for i := range r.mains {
		r.mains[i].final(pod.Spec.RestartPolicy == corev1.RestartPolicyAlways)
	}
	return r
}

func adopt(specs []corev1.Container, statuses []corev1.ContainerStatus) []container {
	out := make([]container, len(specs))
	for i := range specs {
		for j := range statuses {
			if statuses[j].Name == specs[i].Name && statuses[j].ContainerID != "" {
				out[i] = adoptContainer(&specs[i], &statuses[j])
			}
		}
	}
	return out
}

func adoptContainer(spec *corev1.Container, s *corev1.ContainerStatus) container {
	c := container{
		image:     s.Image,
		id:        s.ContainerID,
		ranImage:  s.Image,
		restart:   s.RestartCount,
		resources: spec.Resources,
		ended:     s.LastTerminationState.Terminated,
	}
	if s.Resources != nil {
		c.resources = *s.Resources
	}
	switch {
	case s.State.Running != nil:
		c.state, c.started = running, s.State.Running.StartedAt.Time
		c.readyAt = c.started
	case s.State.Terminated != nil:
		c.state, c.ended = exited, s.State.Terminated
	default:
		c.reason = reasonCrashBackOff
	}
	return c
}

// final distinguishes a container that ended for good from one that was about to be started again.
func (c *container) final(restarts bool) {
	if c.state == exited && restarts {
		c.state, c.reason = waiting, reasonCreating
	}
}

// step advances all containers to now and returns the time of the next change that needs no change of the pod, zero for
// none.
func (r *podRun) step(pod *corev1.Pod, now time.Time, o *Options, image func(string) Image) time.Time {
	var next time.Time
	ready := true
	for i := range r.inits {
		spec := &pod.Spec.InitContainers[i]
		if !ready {
			r.inits[i].reason = reasonInitializing
			continue
		}
		w := r.world(pod, spec, now, o, image)
		w.runToExit = !podspec.IsSidecar(spec)
		if !w.runToExit {
			w.policy = corev1.RestartPolicyAlways
		}
		next = earliest(next, r.inits[i].step(spec, w))
		ready = initDone(&r.inits[i], spec)
	}
	for i := range r.mains {
		if !ready && r.mains[i].ranImage == "" {
			r.mains[i].reason = reasonInitializing
			continue
		}
		spec := &pod.Spec.Containers[i]
		next = earliest(next, r.mains[i].step(spec, r.world(pod, spec, now, o, image)))
	}
	return next
}

func (r *podRun) world(pod *corev1.Pod, spec *corev1.Container, now time.Time, o *Options, image func(string) Image) world {
	behaviour := image(spec.Image)
	stretch := 1 + o.Jitter*fraction(o.Seed, pod.Namespace, pod.Name)
	return world{
		now:      now,
		image:    behaviour,
		policy:   pod.Spec.RestartPolicy,
		backoff:  o.CrashBackoff,
		startIn:  time.Duration(float64(o.StartDelay+behaviour.StartDelay) * stretch),
		readyIn:  time.Duration(float64(o.ReadyDelay+behaviour.ReadyDelay) * stretch),
		resizeIn: o.ResizeDelay,
		newID: func(attempt int32) string {
			return "containerd://" + digest(o.Seed, string(r.uid), spec.Name, fmt.Sprint(attempt))
		},
	}
}

// end stops every container, as a kubelet does before it lets a deleted pod go.
func (r *podRun) end(now time.Time) {
	for _, list := range [][]container{r.inits, r.mains} {
		for i := range list {
			if list[i].state == running {
				list[i].end(now, 0)
			}
			list[i].state = exited
		}
	}
}

// phase returns the phase of the pod, by the rules of the kubelet.
func (r *podRun) phase(pod *corev1.Pod) corev1.PodPhase {
	for i := range r.inits {
		if initFailed(&r.inits[i], &pod.Spec.InitContainers[i]) {
			return corev1.PodFailed
		}
	}
	phase, everStarted := corev1.PodSucceeded, false
	for i := range r.mains {
		c := &r.mains[i]
		everStarted = everStarted || c.ranImage != ""
		switch {
		case c.state != exited:
			phase = corev1.PodRunning
		case c.ended != nil && c.ended.ExitCode != 0 && phase == corev1.PodSucceeded:
			phase = corev1.PodFailed
		}
	}
	if phase == corev1.PodRunning && !everStarted {
		return corev1.PodPending
	}
	return phase
}

func (r *podRun) initialized(pod *corev1.Pod) bool {
	for i := range r.inits {
		if !initDone(&r.inits[i], &pod.Spec.InitContainers[i]) {
			return false
		}
	}
	return true
}

// initDone reports whether the containers after an init container may start.
func initDone(c *container, spec *corev1.Container) bool {
	if podspec.IsSidecar(spec) {
		return c.ranImage != ""
	}
	return c.state == exited && (c.ended == nil || c.ended.ExitCode == 0)
}

func initFailed(c *container, spec *corev1.Container) bool {
	return !podspec.IsSidecar(spec) && c.state == exited && c.ended != nil && c.ended.ExitCode != 0
}

// ImageID returns what a simulated node reports for an image whose content is that of canonical: equal for equal
// canonical images, and different otherwise. A reference by digest keeps its digest.
func ImageID(canonical string) string {
	if strings.Contains(canonical, "@") {
		return canonical
	}
	repository := canonical
	if colon := strings.LastIndex(canonical, ":"); colon > strings.LastIndex(canonical, "/") {
		repository = canonical[:colon]
	}
	return repository + "@sha256:" + digest(0, canonical)
}

func digest(seed int64, parts ...string) string {
	h := sha256.New()
	fmt.Fprintf(h, "%d\x00%s", seed, strings.Join(parts, "\x00"))
	return hex.EncodeToString(h.Sum(nil))
}

// fraction maps its arguments to a number in [0, 1).
func fraction(seed int64, parts ...string) float64 {
	raw, _ := hex.DecodeString(digest(seed, parts...)[:8])
	return float64(binary.BigEndian.Uint32(raw)) / (1 << 32)
}
