package plan

import (
	"cmp"
	"maps"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/flotilla-project/flotilla/core/plan/action"
	"github.com/flotilla-project/flotilla/core/pods/imageref"
	"github.com/flotilla-project/flotilla/daemon/api/v1beta1"
)

// Compute makes the plan of a snapshot.
func Compute(s Snapshot) Plan {
	p := newPass(s)
	p.dropUnwanted()
	p.fillSlots()
	if s.Image != nil {
		p.plan.Status = p.status()
	}
	return p.plan
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

// pass is the state of making one plan.
type pass struct {
	Snapshot
	tags    []tag // sorted by name and tag
	pulls   map[ID]*Pull
	began   map[ID]time.Time // as the status has it
	started map[ID]bool
	plan    Plan
}

func newPass(s Snapshot) *pass {
	p := &pass{Snapshot: s, pulls: map[ID]*Pull{}, began: map[ID]time.Time{}, started: map[ID]bool{}}
	if s.Image != nil && s.Image.DeletionTimestamp == nil {
		p.readTags()
	}
	for i := range s.Pulls {
		if pull := &s.Pulls[i]; pull.State != Stopping {
			p.pulls[pull.ID] = pull
		}
	}
	return p
}

// readTags joins spec and status.
func (p *pass) readTags() {
	for _, name := range slices.Sorted(maps.Keys(p.Image.Spec.Images)) {
		image := p.Image.Spec.Images[name]
		states := byTag(p.Image.Status.ImageStatuses[name].Tags)
		first := len(p.tags)
		for i := range image.Tags {
			t := tag{spec: &image.Tags[i]}
			t.ID = ID{Ref: imageref.Ref{Name: name, Tag: t.spec.Tag}, Version: t.spec.Version}
			if state := states[t.spec.Tag]; state != nil && state.Version == t.Version {
				t.before = state
				if state.CompletionTime != nil {
					t.finished = state
				}
			}
			p.tags = append(p.tags, t)
			if t.finished == nil {
				p.plan.Requests = append(p.plan.Requests, newRequest(t.ID, t.spec, &image))
			}
		}
		slices.SortFunc(p.tags[first:], func(a, b tag) int { return cmp.Compare(a.Tag, b.Tag) })
	}
	p.sortRequests()
}

// sortRequests brings the requests into the order in which their pulls began, and then in which their tags were added: an agent
// that is restarted has no other memory of its queue.
func (p *pass) sortRequests() {
	added := make(map[ID]time.Time, len(p.tags))
	for i := range p.tags {
		t := &p.tags[i]
		if t.before != nil && t.before.StartTime != nil {
			p.began[t.ID] = t.before.StartTime.Time
		}
		if t.spec.CreatedAt != nil {
			added[t.ID] = t.spec.CreatedAt.Time
		}
	}
	slices.SortStableFunc(p.plan.Requests, func(a, b PullRequest) int {
		return cmp.Or(p.compareBegan(a.ID, b.ID), p.began[a.ID].Compare(p.began[b.ID]), added[a.ID].Compare(added[b.ID]))
	})
}

// compareBegan puts pulls that an earlier process began before others.
func (p *pass) compareBegan(a, b ID) int {
	_, first := p.began[a]
	_, second := p.began[b]
	switch {
	case first == second:
		return 0
	case first:
		return -1
	}
	return 1
}

func byTag(states []v1beta1.ImageTagStatus) map[string]*v1beta1.ImageTagStatus {
	out := make(map[string]*v1beta1.ImageTagStatus, len(states))
	for i := range states {
		out[states[i].Tag] = &states[i]
	}
	return out
}

// newRequest reads spec.images[].tags[].pullPolicy. Objects written without the webhook lack defaults.
func newRequest(id ID, spec *v1beta1.ImageTagSpec, image *v1beta1.ImageSpec) PullRequest {
	r := PullRequest{
		ID:       id,
		Timeout:  v1beta1.DefaultTimeoutSeconds * time.Second,
		Attempts: v1beta1.DefaultBackoffLimit + 1,
		Always:   spec.ImagePullPolicy == v1beta1.PullAlways,
		Secrets:  image.PullSecrets,
		Sandbox:  image.SandboxConfig,
		Owners:   spec.OwnerReferences,
	}
	policy := spec.PullPolicy
	if policy == nil {
		return r
	}
	if seconds := policy.TimeoutSeconds; seconds != nil && *seconds > 0 {
		r.Timeout = action.Seconds(*seconds)
	}
	if limit := policy.BackoffLimit; limit != nil && *limit >= 0 {
		r.Attempts = int(*limit) + 1
	}
	if seconds := policy.ActiveDeadlineSeconds; seconds != nil && *seconds > 0 {
		r.Deadline = action.Seconds(*seconds)
	}
	return r
}

// dropUnwanted stops or drops pulls of tags that are gone, that have another version now, or that are
// complete. The agent completes tags, and so does the manager after a timeout.
func (p *pass) dropUnwanted() {
	wanted := make(map[ID]bool, len(p.plan.Requests))
	for i := range p.plan.Requests {
		wanted[p.plan.Requests[i].ID] = true
	}
	for i := range p.Pulls {
		pull := &p.Pulls[i]
		if wanted[pull.ID] || pull.State == Stopping {
			continue
		}
		delete(p.pulls, pull.ID)
		if pull.State == Running {
			p.plan.Stop = append(p.plan.Stop, pull.ID)
		} else {
			p.plan.Drop = append(p.plan.Drop, pull.ID)
		}
	}
	p.plan.Unfinished = len(p.plan.Requests) > 0
}

// fillSlots gives free slots to queued pulls: to those that an earlier process began, then to the namespace that holds the fewest,
// and first in first out. A namespace gets a second slot once each that waits has one. Nothing starts while there is an obstacle.
func (p *pass) fillSlots() {
	if p.obstacle() != "" {
		return
	}
	namespaces := p.namespaces()
	held := map[string]int{}
	taken := 0
	for i := range p.Pulls {
		if state := p.Pulls[i].State; state == Running || state == Stopping {
			taken++
			held[namespaces[p.Pulls[i].ID]]++
		}
	}
	for queue := p.queue(); len(queue) > 0 && (p.Slots <= 0 || taken < p.Slots); taken++ {
		next := slices.MinFunc(queue, func(a, b ID) int {
			return cmp.Or(p.compareBegan(a, b), cmp.Compare(held[namespaces[a]], held[namespaces[b]]))
		})
		queue = slices.DeleteFunc(queue, func(id ID) bool { return id == next })
		held[namespaces[next]]++
		p.started[next] = true
		p.plan.Start = append(p.plan.Start, next)
	}
}

// obstacle returns why no pull begins; empty if one may. An attempt without a runtime would be wasted. On a node under
// disk pressure, a pull would make the kubelet evict pods.
func (p *pass) obstacle() string {
	if p.NoRuntime == "" && p.Image != nil && p.Image.Annotations[v1beta1.DiskPressureAnnotation] != "" {
		return MessageDiskPressure
	}
	return p.NoRuntime
}

// MessageDiskPressure is the message of tags that wait until the node has space.
const MessageDiskPressure = "the node has condition DiskPressure: pulls begin when it has space"

// namespaces returns the namespace for which each image is pulled: the namespace of the first object that wants the tag.
// It leaves out tags without owners.
func (p *pass) namespaces() map[ID]string {
	out := make(map[ID]string, len(p.plan.Requests))
	for i := range p.plan.Requests {
		if r := &p.plan.Requests[i]; len(r.Owners) > 0 {
			out[r.ID] = r.Owners[0].Namespace
		}
	}
	return out
}

// queue returns the pulls that wait for a slot: those in memory, then the new ones.
func (p *pass) queue() []ID {
	var queue []ID
	for i := range p.Pulls {
		if pull := &p.Pulls[i]; pull.State == Queued && p.pulls[pull.ID] != nil {
			queue = append(queue, pull.ID)
		}
	}
	for i := range p.plan.Requests {
		if id := p.plan.Requests[i].ID; p.pulls[id] == nil {
			queue = append(queue, id)
		}
	}
	return queue
}

// startTime keeps the start of a pull that an earlier process began: a restart of the agent must not
// lengthen spec.images[].tags[].pullPolicy.activeDeadlineSeconds.
func (p *pass) startTime(t *tag) *metav1.Time {
	if pull := p.pulls[t.ID]; pull != nil && pull.StartTime != nil {
		return pull.StartTime
	}
	if t.before != nil && t.before.StartTime != nil {
		return t.before.StartTime
	}
	return &metav1.Time{Time: p.Now}
}
