package plan

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/types"

	"github.com/flotilla-project/flotilla/core/plan/action"
	"github.com/flotilla-project/flotilla/core/pods/imageref"

	nodeimage "github.com/flotilla-project/flotilla/daemon/api/v1beta1"
	"github.com/flotilla-project/flotilla/jobs/api/v1beta1"
)

// state is where a node stands.
type state int

const (
	unsynced state = iota // its NodeImage does not ask for the image on behalf of the job
	pulling
	succeeded
	failed
)

// node has the known facts about one target.
type node struct {
	name    string
	state   state
	message string // of a failed one
	// begun is when this round of pulling was asked for, ended when it ended, and kept how long the tag stays after that;
	// zero if unknown.
	begun, ended time.Time
	kept         time.Duration
	// outdated is true if the node is pulling in a way that the job has changed since.
	outdated bool
}

// tally counts the targets of a job.
type tally struct {
	ref      imageref.Ref
	uid      types.UID
	policy   nodeimage.ImageTagPullPolicy
	template *v1beta1.ImagePullJobTemplate
	secrets  []nodeimage.SecretReference
	// gone are secrets that do not exist.
	gone map[types.NamespacedName]bool
	// bounded is true if the deadline in the policy is not the user's.
	bounded bool

	nodes                     []node // in the order of the targets
	active, succeeded, failed int
}

func (t *tally) count(targets []*nodeimage.NodeImage) {
	t.nodes = make([]node, len(targets))
	for i, image := range targets {
		t.nodes[i] = t.look(image)
		switch t.nodes[i].state {
		case pulling:
			t.active++
		case succeeded:
			t.succeeded++
		case failed:
			t.failed++
		case unsynced:
		}
	}
}

// look reads one NodeImage. A state of another version belongs to another round of pulling.
func (t *tally) look(image *nodeimage.NodeImage) node {
	n := node{name: image.Name}
	spec := image.Spec.Images[t.ref.Name]
	tag := find(spec.Tags, t.ref.Tag)
	if tag == nil || !t.owns(tag) {
		return n
	}
	n.state = pulling
	if tag.CreatedAt != nil {
		n.begun = tag.CreatedAt.Time
	}
	if tag.PullPolicy != nil && tag.PullPolicy.TTLSecondsAfterFinished != nil {
		n.kept = action.Seconds(*tag.PullPolicy.TTLSecondsAfterFinished)
	}
	for _, told := range image.Status.ImageStatuses[t.ref.Name].Tags {
		if told.Tag != tag.Tag || told.Version != tag.Version {
			continue
		}
		if told.CompletionTime != nil {
			n.ended = told.CompletionTime.Time
		}
		switch told.Phase {
		case nodeimage.ImageSucceeded:
			n.state = succeeded
		case nodeimage.ImageFailed:
			n.state, n.message = failed, told.Message
		case nodeimage.ImageWaiting, nodeimage.ImagePulling:
		}
	}
	n.outdated = n.state == pulling && t.differs(&spec, tag)
	return n
}

func find(tags []nodeimage.ImageTagSpec, name string) *nodeimage.ImageTagSpec {
	for i := range tags {
		if tags[i].Tag == name {
			return &tags[i]
		}
	}
	return nil
}

func (t *tally) owns(tag *nodeimage.ImageTagSpec) bool {
	for i := range tag.OwnerReferences {
		if tag.OwnerReferences[i].UID == t.uid {
			return true
		}
	}
	return false
}

// differs reports whether an entry is different from the one that the job would write now. Where other jobs want the
// tag too, they agree: each limit is the largest of all jobs, and secrets are added up.
func (t *tally) differs(image *nodeimage.ImageSpec, tag *nodeimage.ImageTagSpec) bool {
	next := t.merged(image, tag)
	return !equality.Semantic.DeepEqual(next.SandboxConfig, image.SandboxConfig) || !t.hasSecrets(image) ||
		!t.sameLimits(find(next.Tags, t.ref.Tag), tag)
}

// sameLimits compares the entry of a tag as the job would write it with the one that is there. That one may lack a bound
// which the user did not ask for.
func (t *tally) sameLimits(a, b *nodeimage.ImageTagSpec) bool {
	x, y := a.PullPolicy, b.PullPolicy
	if x == nil || y == nil {
		return x == y
	}
	always := func(p nodeimage.ImagePullPolicy) bool { return p == nodeimage.PullAlways }
	return equality.Semantic.DeepEqual(x.TimeoutSeconds, y.TimeoutSeconds) && equality.Semantic.DeepEqual(x.BackoffLimit, y.BackoffLimit) &&
		(t.bounded && y.ActiveDeadlineSeconds == nil || equality.Semantic.DeepEqual(x.ActiveDeadlineSeconds, y.ActiveDeadlineSeconds)) && always(a.ImagePullPolicy) == always(b.ImagePullPolicy)
}

// giveUp counts all nodes that have not ended as failed.
func (t *tally) giveUp() {
	for i := range t.nodes {
		switch n := &t.nodes[i]; n.state {
		case unsynced:
			n.state, n.message = failed, MessageNotStarted
		case pulling:
			n.state, n.message = failed, MessageNotEnded
		case succeeded, failed:
			continue
		}
		t.failed++
	}
	t.active = 0
}

// tellFailures names the nodes that failed, and why the first ones did.
func (t *tally) tellFailures(status *v1beta1.ImagePullJobStatus) {
	status.Failed = int32(t.failed)
	if t.failed == 0 {
		return
	}
	var all []v1beta1.NodeFailure
	for i := range t.nodes {
		if t.nodes[i].state == failed {
			all = append(all, v1beta1.NodeFailure{Node: t.nodes[i].name, Message: t.nodes[i].message})
		}
	}
	slices.SortFunc(all, func(a, b v1beta1.NodeFailure) int { return cmp.Compare(a.Node, b.Node) })
	for i := range all {
		status.FailedNodes = append(status.FailedNodes, all[i].Node)
	}
	status.Failures = all[:min(len(all), v1beta1.MaxFailures)]
}

// slow is how long a node may pull before the job names it.
const slow = 10 * time.Minute

// tellSlow names the first nodes that have pulled for a long time.
func (p *pass) tellSlow(t *tally) {
	const most = 3
	var names []string
	for i := range t.nodes {
		n := &t.nodes[i]
		if n.state != pulling || n.begun.IsZero() {
			continue
		}
		if left := slow - p.Now.Sub(n.begun); left > 0 {
			p.plan.RequeueWithin(max(left, minWake))
			continue
		}
		names = append(names, n.name)
	}
	if len(names) == 0 {
		return
	}
	text := strings.Join(names[:min(most, len(names))], ", ")
	if more := len(names) - most; more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	p.notes = append(p.notes, MessageSlow+text)
}

// progress returns how many nodes have ended, in words.
func (t *tally) progress() string {
	if len(t.nodes) == 0 {
		return MessageNoProgress
	}
	return fmt.Sprintf("%s%.1f%%", MessageProgress, 100*float64(t.succeeded+t.failed)/float64(len(t.nodes)))
}

func join(message string, notes []string) string {
	return strings.Join(append([]string{message}, notes...), "; ")
}
