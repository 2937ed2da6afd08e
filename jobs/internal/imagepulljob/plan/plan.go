package plan

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/flotilla-project/flotilla/core/plan/action"
	"github.com/flotilla-project/flotilla/core/pods/imageref"

	nodeimage "github.com/flotilla-project/flotilla/daemon/api/v1beta1"
	"github.com/flotilla-project/flotilla/jobs/api/v1beta1"
	"github.com/flotilla-project/flotilla/jobs/internal/completion"
)

// minWake avoids passes shortly after each other for a deadline.
const minWake = time.Second

// Plan is the result of one pass over a job.
type Plan struct {
	action.Plan
	// Err is why the spec cannot be followed.
	Err error

	status *v1beta1.ImagePullJobStatus // nil leaves it as it is
}

// Status returns the next status, given the failed actions; nil leaves it as it is. The message of a job that has not
// ended names the refused writes.
func (p *Plan) Status(done action.Failures) *v1beta1.ImagePullJobStatus {
	text := cmp.Or(done.UpdateError, done.ScaleError)
	if p.status == nil || text == "" || p.status.CompletionTime != nil {
		return p.status
	}
	next := *p.status
	next.Message = join(next.Message, []string{text})
	return &next
}

// pass is the state of making one plan.
type pass struct {
	Snapshot
	plan   Plan
	policy v1beta1.CompletionPolicy
	notes  []string // follow the message of the status
}

// Compute makes the plan of one pass. It never changes the snapshot.
func Compute(s Snapshot) Plan {
	p := &pass{
		Snapshot: s,
		plan:     Plan{Plan: action.Plan{Refusals: s.Refusals, Now: s.Now}},
		policy:   s.Job.Spec.CompletionPolicy,
	}
	switch {
	case s.Job.DeletionTimestamp != nil:
		p.release()
	case s.Job.Status.CompletionTime != nil:
		p.finish()
	default:
		p.run()
	}
	return p.admitted()
}

// admitted returns the plan as it is executed.
func (p *pass) admitted() Plan {
	p.plan.Plan = action.Admit(p.plan.Plan)
	return p.plan
}

// finish clears up after a job that has completed.
func (p *pass) finish() {
	p.release()
	completion.Expire(&p.plan.Plan, p.Job, p.Job.Status.CompletionTime, p.policy.TTLSecondsAfterFinished)
	if completion.EditedLate(&p.plan.Plan, p.Job, p.Job.Status.ObservedGeneration) {
		p.plan.status = p.Job.Status.DeepCopy()
		p.plan.status.ObservedGeneration = p.Job.Generation
	}
}

// release gives up the copies of secrets, and then lets the job go. Without the right to do so a job keeps its finalizer
// until it is deleted, and no longer: it would hold its namespace. Copies of a job that is gone go when the right is there.
func (p *pass) release() {
	p.plan.Add(action.Step{Name: "release", Actions: p.releaseCopies(nil)})
	if !slices.Contains(p.Job.Finalizers, v1beta1.ProtectionFinalizer) {
		return
	}
	if p.Job.DeletionTimestamp == nil && (p.Secrets.Unread || len(p.Secrets.Lacking) > 0) {
		p.plan.RequeueWithin(SecretRecheck)
		return
	}
	others := slices.DeleteFunc(slices.Clone(p.Job.Finalizers), func(f string) bool { return f == v1beta1.ProtectionFinalizer })
	p.plan.Add(p.setFinalizers("Released", "the job has finished using its secrets", others))
}

func (p *pass) setFinalizers(reason, message string, finalizers []string) action.Step {
	return action.Step{Name: "finalizer", Actions: []action.Action{{
		Verb:    action.PatchMetadata,
		Object:  p.Job,
		Reason:  reason,
		Message: message,
		Patches: []action.Patch{{Type: types.MergePatchType, Body: map[string]any{"metadata": map[string]any{"finalizers": finalizers}}}},
	}}}
}

// run brings an unfinished job forward.
func (p *pass) run() {
	ref, err := imageref.Parse(p.Job.Spec.Image)
	if err != nil {
		p.plan.Err = err
		p.plan.status = p.Job.Status.DeepCopy()
		p.plan.status.ObservedGeneration = p.Job.Generation
		p.plan.status.Message = err.Error()
		return
	}
	t := tally{
		ref:      ref,
		uid:      p.Job.UID,
		policy:   p.pullPolicy(),
		template: &p.Job.Spec.ImagePullJobTemplate,
		bounded:  p.policy.ActiveDeadlineSeconds == nil,
	}
	p.Targets = p.readyFirst()
	secrets, ready := p.copySecrets()
	t.secrets, t.gone = secrets, map[types.NamespacedName]bool{}
	for _, name := range p.Secrets.Gone {
		t.gone[types.NamespacedName{Namespace: p.Secrets.Namespace, Name: name}] = true
	}
	t.count(p.Targets)
	status := p.status(&t)
	p.plan.status = status
	if ready && status.CompletionTime == nil {
		p.pull(&t)
		p.tellSlow(&t)
	}
	status.Message = join(status.Message, p.notes)
}

// readyFirst returns the targets with those behind the others whose nodes are not ready: each of these would hold a place
// until it is given up.
func (p *pass) readyFirst() []*nodeimage.NodeImage {
	if len(p.NotReady) == 0 {
		return p.Targets
	}
	var first, last []*nodeimage.NodeImage
	for _, target := range p.Targets {
		if p.NotReady[target.Name] {
			last = append(last, target)
		} else {
			first = append(first, target)
		}
	}
	return append(first, last...)
}

// pull writes the entries of the nodes that may begin, and of those with a pull that the job has changed since, and
// removes entries that the job does not want any more.
func (p *pass) pull(t *tally) {
	budget := p.parallelism() - t.active
	wanted := make(map[types.UID]bool, len(p.Targets))
	begin := action.Step{Name: "pull"}
	var abandon []action.Action
	full := 0
	for i, image := range p.Targets {
		wanted[image.UID] = true
		n := &t.nodes[i]
		begins := n.state == unsynced && budget > 0
		switch {
		case (begins || n.outdated) && t.lacksRoom(image):
			full++
			p.plan.Wait(WaitRoom, image.Name, "the node has %d images to pull, or %d tags or %d pull secrets of this one",
				nodeimage.MaxImagesPerNode, nodeimage.MaxTagsPerImage, nodeimage.MaxSecretsPerImage)
		case begins || n.outdated:
			for _, write := range p.bring(t, image, n, asked, "Pull", fmt.Sprintf("node %d of %d", i+1, len(p.Targets))) {
				if p.plan.Try(&begin, write) && begins {
					budget--
				}
			}
		case p.expires(n):
			abandon = append(abandon, p.bring(t, image, n, prolonged, "Keep", "the job still runs")...)
		default:
			abandon = append(abandon, p.bring(t, image, n, kept, "Abandon", notWanted)...)
		}
	}
	for _, image := range p.Owned {
		if !wanted[image.UID] {
			abandon = append(abandon, p.bring(t, image, nil, nothing, "Abandon", notWanted)...)
		}
	}
	if full > 0 {
		p.notes = append(p.notes, strconv.Itoa(full)+" nodes have the maximum number of images, tags or pull secrets")
	}
	// Abandoned pulls stop first, so that never more nodes pull than may.
	p.plan.Add(action.Step{Name: "abandon", Actions: abandon})
	p.plan.Add(begin)
}

// notWanted is why a job has a NodeImage drop a tag.
const notWanted = "the job has finished with this node"

// parallelism returns how many nodes may pull at a time.
func (p *pass) parallelism() int {
	if p.Job.Spec.Parallelism == nil {
		return 1
	}
	if p.Job.Spec.Parallelism.Type == intstr.Int {
		return int(p.Job.Spec.Parallelism.IntVal)
	}
	n, err := strconv.Atoi(p.Job.Spec.Parallelism.StrVal)
	if err != nil {
		p.plan.Err = err
		return 0
	}
	return n
}

// status returns the next status.
func (p *pass) status(t *tally) *v1beta1.ImagePullJobStatus {
	status := &v1beta1.ImagePullJobStatus{
		StartTime:          p.Job.Status.StartTime,
		ObservedGeneration: p.Job.Generation,
		Desired:            int32(len(t.nodes)),
		Active:             int32(t.active),
		Succeeded:          int32(t.succeeded),
	}
	if status.StartTime == nil {
		status.StartTime = new(metav1.NewTime(p.Now))
	}
	never := p.policy.Type == v1beta1.CompletionNever
	switch left, bounded := p.deadline(status.StartTime.Time); {
	case !never && t.succeeded+t.failed == len(t.nodes) && !p.NoNodeImages:
		p.complete(status, MessageCompleted)
	case !never && bounded && left <= 0:
		t.giveUp()
		status.Active = 0
		p.complete(status, MessageDeadline)
	default:
		if bounded && !never {
			p.plan.RequeueWithin(max(left, minWake))
		}
		status.Message = t.progress()
	}
	t.tellFailures(status)
	if p.NoNodeImages && status.CompletionTime == nil {
		p.notes = append(p.notes, MessageNoNodeImages)
	}
	if p.Absent > 0 {
		p.notes = append(p.notes, strconv.Itoa(p.Absent)+" nodes in spec.selector.names have no NodeImage")
	}
	return status
}

func (p *pass) complete(status *v1beta1.ImagePullJobStatus, message string) {
	status.CompletionTime = new(metav1.NewTime(p.Now))
	status.Message = message
}

// deadline returns how much is left of activeDeadlineSeconds; false if there is none.
func (p *pass) deadline(start time.Time) (time.Duration, bool) {
	if p.policy.ActiveDeadlineSeconds == nil {
		return 0, false
	}
	return action.Seconds(*p.policy.ActiveDeadlineSeconds) - p.Now.Sub(start), true
}

// Obstacle is why no job pulls anything.
type Obstacle struct{ Event, Message string }

// The obstacles.
var (
	NotInstalled = Obstacle{EventNotInstalled, MessageNotInstalled} //nolint:gochecknoglobals // a constant
	Forbidden    = Obstacle{EventForbidden, MessageForbidden}       //nolint:gochecknoglobals // a constant
	OneNamespace = Obstacle{EventOneNamespace, MessageOneNamespace} //nolint:gochecknoglobals // a constant
)

// Waiting is the plan while there is an obstacle.
func Waiting(job *v1beta1.ImagePullJob, now time.Time, known action.Refusals, why Obstacle) Plan {
	unread := Secrets{Unread: true}
	p := &pass{
		Snapshot: Snapshot{Job: job, Secrets: unread, Now: now},
		plan:     Plan{Plan: action.Plan{Refusals: known, Now: now}},
		policy:   job.Spec.CompletionPolicy,
	}
	switch {
	case job.DeletionTimestamp != nil:
		p.release()
	case job.Status.CompletionTime != nil:
		p.finish()
	default:
		status := job.Status.DeepCopy()
		status.ObservedGeneration, status.Message = job.Generation, why.Message
		p.plan.status = status
		if job.Status.Message != why.Message {
			p.plan.Notices = append(p.plan.Notices, action.Notice{
				Type:       corev1.EventTypeWarning,
				Reason:     why.Event,
				Note:       why.Message,
				WithStatus: true,
			})
		}
	}
	return p.admitted()
}
