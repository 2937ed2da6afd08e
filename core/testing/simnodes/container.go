package simnodes

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
)

type state int

const (
	waiting state = iota // for its next start
	running
	exited // for good
)

// Reasons of waiting containers.
const (
	reasonCreating     = "ContainerCreating"
	reasonInitializing = "PodInitializing"
	reasonPullBackOff  = "ImagePullBackOff"
	reasonCrashBackOff = "CrashLoopBackOff"
)

// backoffDoublings bounds the crash backoff at 32 times its base, near the kubelet's 300 s for 10 s.
const backoffDoublings = 5

// container is one container of a pod through all its restarts.
type container struct {
	image   string // what runs or is about to run
	state   state
	reason  string    // why it waits
	due     time.Time // when a waiting container may start
	restart int32     // how often it was started again
	crashes int32     // ends by itself since the last change

	id, ranImage string // of the last container that was started
	started      time.Time
	readyAt      time.Time
	resources    corev1.ResourceRequirements
	resizeAt     time.Time // when a change of resources under way is complete; zero: none
	refused      string    // reason for which a resize is not carried out
	ended        *corev1.ContainerStateTerminated

	failing  bool   // readiness probe, by order of a test
	exitCode *int32 // the process is to end with it, by order of a test
}

// world is what a container's next step depends on besides itself.
type world struct {
	now       time.Time
	image     Image
	policy    corev1.RestartPolicy
	startIn   time.Duration // delay of a start
	readyIn   time.Duration
	resizeIn  time.Duration
	backoff   time.Duration
	newID     func(attempt int32) string
	runToExit bool // an init container
}

// step advances the container to now and returns when to look again; zero: only when the pod changes. A replaced
// container stops short of its next start, so that its end is reported first.
func (c *container) step(spec *corev1.Container, w world) time.Time {
	if c.state != exited && c.ranImage != "" && spec.Image != c.image {
		c.replace(spec, w)
		return c.due
	}
	c.image = spec.Image
	if c.state == waiting && !c.start(spec, w) {
		return c.due
	}
	if c.state != running {
		return time.Time{}
	}
	exitAt := c.exit(w)
	if c.state != running {
		return exitAt
	}
	return earliest(exitAt, c.resize(spec, w), c.unripe(w))
}

// replace ends the running container, if any, in favour of what the spec now says.
func (c *container) replace(spec *corev1.Container, w world) {
	if c.state == running {
		c.end(w.now, 0)
	}
	c.image = spec.Image
	c.state = waiting
	c.reason = reasonCreating
	c.crashes = 0
	c.due = w.now.Add(w.startIn)
}

func (c *container) start(spec *corev1.Container, w world) bool {
	switch {
	case w.image.PullFails:
		c.reason, c.due = reasonPullBackOff, time.Time{}
		return false
	case c.due.IsZero() && c.ranImage == "":
		c.reason = reasonCreating
		c.due = w.now.Add(w.startIn)
	}
	if w.now.Before(c.due) {
		return false
	}
	if c.ranImage != "" {
		c.restart++
	}
	c.id = w.newID(c.restart)
	c.ranImage = c.image
	c.resources = *spec.Resources.DeepCopy()
	c.state = running
	c.reason = ""
	c.started = w.now
	c.readyAt = w.now.Add(w.readyIn)
	c.resizeAt, c.refused = time.Time{}, ""
	return true
}

// exit ends the container if its image, or a test, says so; the result is when it will.
func (c *container) exit(w world) time.Time {
	code := w.image.ExitCode
	at := c.started.Add(w.image.ExitAfter)
	switch {
	case c.exitCode != nil:
		code, at = *c.exitCode, w.now
		c.exitCode = nil
	case !w.image.Exits && w.runToExit:
		code, at = 0, c.started
	case !w.image.Exits:
		return time.Time{}
	}
	if w.now.Before(at) {
		return at
	}
	c.end(w.now, code)
	if w.policy == corev1.RestartPolicyNever || (code == 0 && (w.runToExit || w.policy == corev1.RestartPolicyOnFailure)) {
		c.state = exited
		return time.Time{}
	}
	c.state = waiting
	c.reason = reasonCrashBackOff
	c.due = w.now
	if c.crashes > 0 {
		c.due = w.now.Add(w.backoff << min(c.crashes-1, backoffDoublings))
	}
	c.crashes++
	return c.due
}

func (c *container) end(now time.Time, code int32) {
	reason := "Completed"
	if code != 0 {
		reason = "Error"
	}
	c.ended = &corev1.ContainerStateTerminated{
		ExitCode:    code,
		Reason:      reason,
		StartedAt:   wholeSeconds(c.started),
		FinishedAt:  wholeSeconds(now),
		ContainerID: c.id,
	}
}

// resize gives the running container the resources of the spec; the result is when it will.
func (c *container) resize(spec *corev1.Container, w world) time.Time {
	c.refused = ""
	if equality.Semantic.DeepEqual(c.resources, spec.Resources) {
		c.resizeAt = time.Time{}
		return time.Time{}
	}
	if w.image.RefuseResize != "" {
		c.refused = w.image.RefuseResize
		return time.Time{}
	}
	if c.resizeAt.IsZero() {
		c.resizeAt = w.now.Add(w.resizeIn)
	}
	if w.now.Before(c.resizeAt) {
		return c.resizeAt
	}
	if resizeRestarts(spec, c.resources) {
		c.replace(spec, w)
		return c.due
	}
	c.resources = *spec.Resources.DeepCopy()
	c.resizeAt = time.Time{}
	return time.Time{}
}

// resizeRestarts reports whether the step from resources to the spec's needs a restart.
func resizeRestarts(spec *corev1.Container, have corev1.ResourceRequirements) bool {
	for _, p := range spec.ResizePolicy {
		changed := !have.Requests[p.ResourceName].Equal(spec.Resources.Requests[p.ResourceName]) ||
			!have.Limits[p.ResourceName].Equal(spec.Resources.Limits[p.ResourceName])
		if changed && p.RestartPolicy == corev1.RestartContainer {
			return true
		}
	}
	return false
}

// ready reports whether the container's readiness probe would succeed.
func (c *container) ready(now time.Time, image Image) bool {
	return c.state == running && !now.Before(c.readyAt) && !image.NeverReady && !c.failing
}

// unripe returns when the container becomes ready by itself; zero: never, or it is.
func (c *container) unripe(w world) time.Time {
	if c.state == running && w.now.Before(c.readyAt) && !w.image.NeverReady {
		return c.readyAt
	}
	return time.Time{}
}

// earliest returns the first of the times that are not zero.
func earliest(times ...time.Time) time.Time {
	var first time.Time
	for _, t := range times {
		if !t.IsZero() && (first.IsZero() || t.Before(first)) {
			first = t
		}
	}
	return first
}
