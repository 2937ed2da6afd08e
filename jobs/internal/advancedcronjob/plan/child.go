package plan

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"slices"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/flotilla-project/flotilla/core/plan/action"
	"github.com/flotilla-project/flotilla/core/pods/podspec"

	"github.com/flotilla-project/flotilla/jobs/api/v1beta1"
)

// tokenLength is how much of the hash of a token is in the name of its job: with the letter before it as much as a
// time.
const tokenLength = 9

// run is the reason for a job: a time of the schedule, or a token that asks for a job at once.
type run struct {
	at    time.Time
	token string
}

// name returns the name of the run's job. The same run always has the same one, so that no crash makes it twice.
func (r run) name(cron *v1beta1.AdvancedCronJob) string {
	if r.token == "" {
		return fmt.Sprintf("%s-%d", cron.Name, r.at.Unix())
	}
	sum := sha256.Sum256([]byte(r.token))
	return cron.Name + "-r" + hex.EncodeToString(sum[:])[:tokenLength]
}

// String is the run in words.
func (r run) String() string {
	if r.token == "" {
		return r.at.Format(time.RFC3339)
	}
	return "run-now " + r.token
}

// create returns the creation of a run's job.
func (p *pass) create(r run) action.Action {
	job := r.job(p.Cron)
	kind := string(p.status.Type)
	name := job.GetName()
	a := action.Action{
		Verb:    action.Create,
		Object:  job,
		Reason:  "Run",
		Message: r.String(),
		Event: &action.Event{
			Succeeded: EventCreated,
			Note:      "created " + kind + " " + name + " for " + r.String(),
			Failed:    EventCreateFailed,
		},
	}
	if limit, bounded := p.deadline(); bounded && r.token == "" {
		a.Deadline = r.at.Add(limit + time.Nanosecond)
	}
	return a
}

// job returns the job of the run, made from the template as it is, but that images of a Job are pulled always where it
// names no policy.
func (r run) job(cron *v1beta1.AdvancedCronJob) action.Object {
	switch t := &cron.Spec.Template; {
	case t.JobTemplate != nil:
		job := &batchv1.Job{ObjectMeta: r.meta(cron, &t.JobTemplate.ObjectMeta), Spec: *t.JobTemplate.Spec.DeepCopy()}
		podspec.DefaultAllToPullAlways(&job.Spec.Template.Spec)
		return job
	case t.ImageListPullJobTemplate != nil:
		template := t.ImageListPullJobTemplate
		return &v1beta1.ImageListPullJob{ObjectMeta: r.meta(cron, &template.ObjectMeta), Spec: *template.Spec.DeepCopy()}
	default:
		template := t.BroadcastJobTemplate
		return &v1beta1.BroadcastJob{ObjectMeta: r.meta(cron, &template.ObjectMeta), Spec: *template.Spec.DeepCopy()}
	}
}

func (r run) meta(cron *v1beta1.AdvancedCronJob, template *metav1.ObjectMeta) metav1.ObjectMeta {
	annotations := maps.Clone(template.Annotations)
	if annotations == nil {
		annotations = map[string]string{}
	}
	for _, key := range []string{v1beta1.ScheduledAtAnnotation, batchv1.CronJobScheduledTimestampAnnotation, v1beta1.RunNowAnnotation} {
		delete(annotations, key)
	}
	if r.token == "" {
		text := r.at.Format(time.RFC3339)
		annotations[v1beta1.ScheduledAtAnnotation], annotations[batchv1.CronJobScheduledTimestampAnnotation] = text, text
	} else {
		annotations[v1beta1.RunNowAnnotation] = r.token
	}
	return metav1.ObjectMeta{
		Namespace:       cron.Namespace,
		Name:            r.name(cron),
		Labels:          maps.Clone(template.Labels),
		Annotations:     annotations,
		OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(cron, v1beta1.GroupVersion.WithKind(v1beta1.AdvancedCronJobKind))},
	}
}

// scheduledAt returns the time that a job was made for; zero if it was made for none, or does not name it.
func scheduledAt(o action.Object) time.Time {
	at, err := time.Parse(time.RFC3339, o.GetAnnotations()[v1beta1.ScheduledAtAnnotation])
	if err != nil {
		return time.Time{}
	}
	return at
}

// observe brings the status up to the state of the jobs.
func (p *pass) observe() {
	children := slices.Clone(p.Children)
	slices.SortFunc(children, func(a, b Child) int {
		return cmp.Or(scheduledAt(a.Object).Compare(scheduledAt(b.Object)), cmp.Compare(a.Object.GetName(), b.Object.GetName()))
	})
	before := p.status.Active
	p.status.Active = nil
	for i := range children {
		child := &children[i]
		p.readable(child)
		if at := scheduledAt(child.Object); p.invalid == nil && !p.takenOver() && at.After(p.since()) {
			p.missUntil(at)
		}
		see(p.status, p.Cron, child)
		old := slices.IndexFunc(before, func(ref corev1.ObjectReference) bool { return ref.UID == child.Object.GetUID() })
		switch {
		case child.State == Active && old >= 0:
			p.status.Active = append(p.status.Active, reference(child, &before[old]))
		case child.State == Active:
			p.status.Active = append(p.status.Active, reference(child, nil))
		case old >= 0:
			p.notice(corev1.EventTypeNormal, EventCompleted, fmt.Sprintf("%s %s has ended: %s", child.Kind, child.Object.GetName(), child.State))
		}
	}
	p.tellLastRun()
}

// readable logs that the time of a job cannot be read: the job counts for no run.
func (p *pass) readable(child *Child) {
	if text := child.Object.GetAnnotations()[v1beta1.ScheduledAtAnnotation]; text != "" && scheduledAt(child.Object).IsZero() {
		p.plan.Wait(WaitUnknownRun, child.Object.GetName(), "annotation %s is %q: it must be an RFC 3339 time", v1beta1.ScheduledAtAnnotation, text)
	}
}

// see notes in the status for which run a job was made, and when it succeeded.
func see(status *v1beta1.AdvancedCronJobStatus, cron *v1beta1.AdvancedCronJob, child *Child) {
	if at := scheduledAt(child.Object); at.After(TimeOf(status.LastScheduleTime)) {
		status.LastScheduleTime = new(metav1.NewTime(at))
	}
	if token := child.Object.GetAnnotations()[v1beta1.RunNowAnnotation]; token != "" && token == cron.Annotations[v1beta1.RunNowAnnotation] {
		status.LastRunNow = token
	}
	if child.State == Succeeded && child.Ended.After(TimeOf(status.LastSuccessfulTime)) {
		status.LastSuccessfulTime = new(metav1.NewTime(child.Ended))
	}
}

// TimeOf is the time, zero for nil.
func TimeOf(t *metav1.Time) time.Time {
	if t == nil {
		return time.Time{}
	}
	return t.Time
}

// reference returns the entry of a job in status.active. The version in it is that with which the job came there, so
// that it does not change with each status of the job.
func reference(child *Child, before *corev1.ObjectReference) corev1.ObjectReference {
	ref := corev1.ObjectReference{
		APIVersion:      child.APIVersion,
		Kind:            child.Kind,
		Namespace:       child.Object.GetNamespace(),
		Name:            child.Object.GetName(),
		UID:             child.Object.GetUID(),
		ResourceVersion: child.Object.GetResourceVersion(),
	}
	if before != nil {
		ref.APIVersion = before.APIVersion
		ref.ResourceVersion = before.ResourceVersion
	}
	return ref
}
