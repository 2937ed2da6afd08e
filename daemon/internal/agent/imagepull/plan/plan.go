package plan

import (
	"cmp"
	"maps"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/flotilla-project/flotilla/core/pods/imageref"
	"github.com/flotilla-project/flotilla/daemon/api/v1beta1"
)

const (
	defaultTimeout = 600 * time.Second
	defaultBackoff = 3
)

// Compute makes the plan of a snapshot.
func Compute(s Snapshot) Plan {
	w := newWorld(s)
	w.dropUnwanted()
	w.fillSlots()
	if s.Image != nil {
		w.plan.Status = w.status()
	}
	return w.plan
}

// tag is a tag of the spec.
type tag struct {
	ID
	spec *v1beta1.ImageTagSpec
	// finished is the entry of the present status that completes this version; nil if there is none.
	finished *v1beta1.ImageTagStatus
	// before is the entry of this version, complete or not.
	before *v1beta1.ImageTagStatus
}

// world is what a plan is made with.
type world struct {
	Snapshot
	tags  []tag // sorted by name and tag
	pulls map[ID]*Pull
	begun map[ID]bool
	plan  Plan
}

func newWorld(s Snapshot) *world {
	w := &world{Snapshot: s, pulls: map[ID]*Pull{}, begun: map[ID]bool{}}
	if s.Image != nil && s.Image.DeletionTimestamp == nil {
		w.readTags()
	}
	for i := range s.Pulls {
		if p := &s.Pulls[i]; p.State != Stopping {
			w.pulls[p.ID] = p
		}
	}
	return w
}

// readTags joins spec and status.
func (w *world) readTags() {
	for _, name := range slices.Sorted(maps.Keys(w.Image.Spec.Images)) {
		image, states := w.Image.Spec.Images[name], byTag(w.Image.Status.ImageStatuses[name].Tags)
		first := len(w.tags)
		for i := range image.Tags {
			t := tag{spec: &image.Tags[i]}
			t.ID = ID{Ref: imageref.Ref{Name: name, Tag: t.spec.Tag}, Version: t.spec.Version}
			if state := states[t.spec.Tag]; state != nil && state.Version == t.Version {
				t.before = state
				if state.CompletionTime != nil {
					t.finished = state
				}
			}
			w.tags = append(w.tags, t)
			if t.finished == nil {
				w.plan.Orders = append(w.plan.Orders, order(t.ID, t.spec, &image))
			}
		}
		slices.SortFunc(w.tags[first:], func(a, b tag) int { return cmp.Compare(a.Tag, b.Tag) })
	}
}

func byTag(states []v1beta1.ImageTagStatus) map[string]*v1beta1.ImageTagStatus {
	out := make(map[string]*v1beta1.ImageTagStatus, len(states))
	for i := range states {
		out[states[i].Tag] = &states[i]
	}
	return out
}

// order reads spec.images[].tags[].pullPolicy. Objects written while no webhook was there lack defaults.
func order(id ID, spec *v1beta1.ImageTagSpec, image *v1beta1.ImageSpec) Order {
	o := Order{
		ID: id, Timeout: defaultTimeout, Attempts: defaultBackoff + 1,
		Always:  spec.ImagePullPolicy == v1beta1.PullAlways,
		Secrets: image.PullSecrets, Sandbox: image.SandboxConfig, Owners: spec.OwnerReferences,
	}
	policy := spec.PullPolicy
	if policy == nil {
		return o
	}
	if seconds := policy.TimeoutSeconds; seconds != nil && *seconds > 0 {
		o.Timeout = time.Duration(*seconds) * time.Second
	}
	if limit := policy.BackoffLimit; limit != nil && *limit >= 0 {
		o.Attempts = int(*limit) + 1
	}
	if seconds := policy.ActiveDeadlineSeconds; seconds != nil && *seconds > 0 {
		o.Deadline = time.Duration(*seconds) * time.Second
	}
	return o
}

// dropUnwanted stops and forgets pulls of tags that are gone, that have another version now, or that are
// complete: by us, or by the manager, which gave up waiting.
func (w *world) dropUnwanted() {
	wanted := make(map[ID]bool, len(w.plan.Orders))
	for i := range w.plan.Orders {
		wanted[w.plan.Orders[i].ID] = true
	}
	for i := range w.Pulls {
		p := &w.Pulls[i]
		if wanted[p.ID] || p.State == Stopping {
			continue
		}
		delete(w.pulls, p.ID)
		if p.State == Running {
			w.plan.Stop = append(w.plan.Stop, p.ID)
		} else {
			w.plan.Forget = append(w.plan.Forget, p.ID)
		}
	}
	w.plan.Unfinished = len(w.plan.Orders) > 0
}

// fillSlots gives free slots to those that wait, the first come first. Nothing begins without a runtime: an
// attempt that cannot succeed would be wasted.
func (w *world) fillSlots() {
	if w.NoRuntime != "" {
		return
	}
	taken := 0
	for i := range w.Pulls {
		if state := w.Pulls[i].State; state == Running || state == Stopping {
			taken++
		}
	}
	for _, id := range w.queue() {
		if w.Slots > 0 && taken >= w.Slots {
			return
		}
		taken++
		w.begun[id] = true
		w.plan.Begin = append(w.plan.Begin, id)
	}
}

// queue returns who waits for a slot: those in memory, then the new ones.
func (w *world) queue() []ID {
	var queue []ID
	for i := range w.Pulls {
		if p := &w.Pulls[i]; p.State == Queued && w.pulls[p.ID] != nil {
			queue = append(queue, p.ID)
		}
	}
	for i := range w.plan.Orders {
		if id := w.plan.Orders[i].ID; w.pulls[id] == nil {
			queue = append(queue, id)
		}
	}
	return queue
}

// startTime keeps the start of a pull that an earlier process began: a restart of the agent must not
// lengthen spec.images[].tags[].pullPolicy.activeDeadlineSeconds.
func (w *world) startTime(t *tag) *metav1.Time {
	if p := w.pulls[t.ID]; p != nil && p.StartTime != nil {
		return p.StartTime
	}
	if t.before != nil && t.before.StartTime != nil {
		return t.before.StartTime
	}
	return &metav1.Time{Time: w.Now}
}
