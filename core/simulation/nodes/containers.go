package nodes

import (
	"cmp"
	"fmt"
	"hash/fnv"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/flotilla-project/flotilla/core/simulation/cluster"
)

const (
	// leftCPU is the cpu that a node can give to a pod that runs there.
	leftCPU = 32
	// crashes is Image.Crashes where it is not given.
	crashes = 4
	// outOfMemory is the exit code of a container that was killed for its memory.
	outOfMemory = 137
)

// containerRuntime is the real state of one container of a pod.
type containerRuntime struct {
	name       string
	spec       *corev1.Container // what the kubelet wants to run
	id         string
	imageID    string
	ran        string            // the image of the spec that the container was started from
	images     map[string]string // the same for every container so far, by ID
	shownImage string            // the name that the runtime reports, one of the tags of the image
	resources  corev1.ResourceRequirements
	began      time.Time
	last       *corev1.ContainerStateTerminated // the former run
	waiting    string                           // reason
	running    bool
	ready      bool
	restarts   int32
	epoch      int // counts changes of state; what was scheduled in an older epoch does not happen
}

func (w *World) image(name string) cluster.Image {
	i := w.Options.Images[name]
	if i.Memory.IsZero() {
		i.Memory = w.Options.Memory
	}
	if i.Digest == "" {
		h := fnv.New64a()
		_, _ = h.Write([]byte(name)) // never fails
		i.Digest = fmt.Sprintf("%016x", h.Sum64())
	}
	return i
}

// restart stops the container and starts it again from its spec.
func (w *World) restart(r *podRuntime, c *containerRuntime) {
	c.epoch++
	epoch := c.epoch
	w.After(w.Takes(cluster.Stopping, 4*time.Second), func() {
		if c.epoch != epoch {
			return
		}
		w.stopContainer(c, 143, "ContainerCreating")
		w.report(r)
		w.startLater(r, c)
	})
}

// stopContainer ends the run of the container, if it runs, with the exit code; it waits for another one.
func (w *World) stopContainer(c *containerRuntime, code int32, waiting string) {
	reason := "Error"
	if code == outOfMemory {
		reason = "OOMKilled"
	}
	if c.running {
		c.last = &corev1.ContainerStateTerminated{
			ExitCode:    code,
			Reason:      reason,
			ContainerID: c.id,
			StartedAt:   metav1.NewTime(c.began.Truncate(time.Second)),
			FinishedAt:  metav1.NewTime(w.Now().Truncate(time.Second)),
		}
	}
	c.running = false
	c.ready = false
	c.waiting = waiting
}

// startLater starts the container after the time that it takes to pull its image.
func (w *World) startLater(r *podRuntime, c *containerRuntime) {
	epoch, work := c.epoch, cluster.Creating
	if c.id != "" {
		work = cluster.Restarting
	}
	w.After(w.Takes(work, 4*time.Second), func() {
		if c.epoch == epoch {
			w.start(r, c)
		}
	})
}

func (w *World) start(r *podRuntime, c *containerRuntime) {
	image := w.image(c.spec.Image)
	if image.PullError {
		c.waiting = "ErrImagePull"
		w.report(r)
		epoch := c.epoch
		w.After(w.Delay(3*time.Second), func() {
			if c.epoch == epoch {
				c.waiting = "ImagePullBackOff"
				w.report(r)
			}
		})
		return
	}
	if c.id != "" {
		c.restarts++
	}
	// A runtime that knows the image under another tag already reports that one.
	imageID := "registry.example.com/images@sha256:" + image.Digest
	if c.imageID != imageID || !w.Chance(0.5) {
		c.shownImage = c.spec.Image
	}
	c.id = fmt.Sprintf("containerd://%s-%s-%d", r.uid, c.name, c.restarts)
	c.imageID = imageID
	c.remember(c.spec.Image)
	w.agents.start(r, c)
	c.resources = c.spec.Resources
	c.began = w.Now()
	r.failed = ""
	c.running, c.ready, c.waiting = true, false, ""
	w.report(r)
	w.settleContainer(r, c)
}

func (c *containerRuntime) remember(image string) {
	if c.images == nil {
		c.images = map[string]string{}
	}
	c.ran, c.images[c.id] = image, image
}

// settleContainer lets a container that runs become ready, or exit when its image is bad.
func (w *World) settleContainer(r *podRuntime, c *containerRuntime) {
	image := w.image(c.spec.Image)
	epoch := c.epoch
	switch {
	case !c.running || image.NeverReady:
	case image.CrashLoop, w.starves(r, c):
		code := int32(1)
		if !image.CrashLoop {
			code = outOfMemory
		}
		w.After(w.Takes(cluster.Crashing, 2*time.Second), func() {
			if c.epoch != epoch {
				return
			}
			w.stopContainer(c, code, "CrashLoopBackOff")
			w.report(r)
			if c.restarts < cmp.Or(image.Crashes, crashes) {
				w.startLater(r, c)
			}
		})
	default:
		w.After(w.untilReady(c), func() {
			if c.epoch != epoch {
				return
			}
			c.ready = true
			w.report(r)
			w.flap(r, c)
		})
	}
}

// untilReady is the time until a container that runs is ready: what is left of the time since its start, where the options say
// how long that takes.
func (w *World) untilReady(c *containerRuntime) time.Duration {
	takes := w.Takes(cluster.BecomingReady, 3*time.Second)
	if w.Options.Takes != nil {
		takes -= w.Now().Sub(c.began)
	}
	return max(takes, 0)
}

// flap makes a ready container fail its probe for a while.
func (w *World) flap(r *podRuntime, c *containerRuntime) {
	if !w.Chance(w.Options.Flaps) {
		return
	}
	epoch := c.epoch
	w.After(w.Delay(10*time.Second), func() {
		if c.epoch != epoch || !c.running {
			return
		}
		c.ready = false
		w.report(r)
		w.After(w.Delay(5*time.Second), func() {
			if c.epoch == epoch && c.running {
				c.ready = true
				w.report(r)
			}
		})
	})
}

// restartsFor reports whether the resize policy wants a restart for what the resize changes.
func (c *containerRuntime) restartsFor() bool {
	for _, p := range c.spec.ResizePolicy {
		if p.RestartPolicy != corev1.RestartContainer {
			continue
		}
		oldRequest := c.resources.Requests[p.ResourceName]
		newRequest := c.spec.Resources.Requests[p.ResourceName]
		oldLimit := c.resources.Limits[p.ResourceName]
		newLimit := c.spec.Resources.Limits[p.ResourceName]
		if oldRequest.Cmp(newRequest) != 0 || oldLimit.Cmp(newLimit) != 0 {
			return true
		}
	}
	return false
}

func (c *containerRuntime) status() corev1.ContainerStatus {
	started := c.running
	s := corev1.ContainerStatus{
		Name:                 c.name,
		Image:                c.shownImage,
		ImageID:              c.imageID,
		ContainerID:          c.id,
		RestartCount:         c.restarts,
		Ready:                c.ready,
		Started:              &started,
		LastTerminationState: corev1.ContainerState{Terminated: c.last},
	}
	if s.Image == "" {
		s.Image = c.spec.Image
	}
	if c.id != "" {
		resources := c.resources
		s.Resources = &resources
	}
	switch {
	case c.running:
		s.State.Running = &corev1.ContainerStateRunning{}
		s.State.Running.StartedAt.Time = c.began.Truncate(time.Second)
	case c.waiting != "":
		s.State.Waiting = &corev1.ContainerStateWaiting{Reason: c.waiting}
	default:
		s.State.Terminated = &corev1.ContainerStateTerminated{Reason: "Completed", ContainerID: c.id}
	}
	return s
}
