package advancedcronjob

import (
	"context"
	"fmt"
	"strings"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/flotilla-project/flotilla/core/controllers/fastclient"
	"github.com/flotilla-project/flotilla/core/controllers/optional"

	"github.com/flotilla-project/flotilla/jobs/api/v1beta1"
	"github.com/flotilla-project/flotilla/jobs/internal/advancedcronjob/plan"
)

// kind is a kind of jobs.
type kind struct {
	name   v1beta1.TemplateKind
	object client.Object
	// children reads the jobs that an AdvancedCronJob controls.
	children func(context.Context, *fastclient.Reader, *v1beta1.AdvancedCronJob) ([]plan.Child, error)
	// child returns the plan's view of a job.
	child func(client.Object) plan.Child
	// optional is the kind, which the cluster may not serve.
	optional optional.Kind
}

// kinds returns all of them.
func kinds() []*kind {
	return []*kind{
		kindOf(v1beta1.TemplateJob, batchv1.SchemeGroupVersion, "jobs", fromJob),
		kindOf(v1beta1.TemplateBroadcastJob, v1beta1.GroupVersion, "broadcastjobs", fromBroadcastJob),
		kindOf(v1beta1.TemplateImageListPullJob, v1beta1.GroupVersion, "imagelistpulljobs", fromImageListPullJob),
	}
}

func kindOf[T any, P fastclient.Object[T]](name v1beta1.TemplateKind, version schema.GroupVersion, resource string, told func(*T) plan.Child) *kind {
	k := &kind{
		name:   name,
		object: P(new(T)),
		optional: optional.Kind{
			GroupKind: version.WithKind(string(name)).GroupKind(),
			Resource:  resource,
			Versions:  []string{version.Version},
		},
	}
	child := func(o *T) plan.Child {
		c := told(o)
		c.Object = P(o)
		c.Kind = string(name)
		c.APIVersion = version.String()
		return c
	}
	k.child = func(o client.Object) plan.Child {
		if job, ok := o.(P); ok {
			return child((*T)(job))
		}
		return plan.Child{Object: o, State: plan.Active}
	}
	k.children = func(ctx context.Context, r *fastclient.Reader, cron *v1beta1.AdvancedCronJob) ([]plan.Child, error) {
		owned, err := fastclient.Controlled[T, P](ctx, r, cron)
		if err != nil {
			return nil, fmt.Errorf("read the jobs of an advanced cron job: %w", err)
		}
		children := make([]plan.Child, 0, len(owned))
		for _, o := range owned {
			children = append(children, child(o))
		}
		return children, nil
	}
	return k
}

// controller returns the name of the kind's controller.
func (k *kind) controller() string { return ControllerName + "-" + strings.ToLower(string(k.name)) }

// cached returns the settings of the cache of the kind.
func (k *kind) cached() cache.ByObject {
	if k.name == v1beta1.TemplateJob {
		return Jobs()
	}
	return cache.ByObject{}
}

func fromJob(job *batchv1.Job) plan.Child {
	state, ended := endOf(job.Status.Conditions, job.Status.CompletionTime, func(c *batchv1.JobCondition) (string, corev1.ConditionStatus, metav1.Time) {
		return string(c.Type), c.Status, c.LastTransitionTime
	})
	return plan.Child{
		State:   state,
		Started: plan.TimeOf(job.Status.StartTime),
		Ended:   ended,
	}
}

func fromBroadcastJob(job *v1beta1.BroadcastJob) plan.Child {
	state, ended := endOf(job.Status.Conditions, job.Status.CompletionTime, func(c *v1beta1.JobCondition) (string, corev1.ConditionStatus, metav1.Time) {
		return string(c.Type), c.Status, c.LastTransitionTime
	})
	return plan.Child{
		State:   state,
		Started: plan.TimeOf(job.Status.StartTime),
		Ended:   ended,
	}
}

// endOf reads the conditions of a job, which both kinds name alike. A Job that has failed has no completion time: it has
// ended when it got the condition.
func endOf[C any](
	conditions []C, completed *metav1.Time, read func(*C) (kind string, status corev1.ConditionStatus, since metav1.Time),
) (state plan.State, ended time.Time) {
	state = plan.Active
	for i := range conditions {
		switch kind, status, since := read(&conditions[i]); {
		case status != corev1.ConditionTrue:
		case kind == string(v1beta1.JobComplete):
			state, ended = plan.Succeeded, since.Time
		case kind == string(v1beta1.JobFailed):
			state, ended = plan.Failed, since.Time
		}
	}
	if completed != nil {
		ended = completed.Time
	}
	return state, ended
}

func fromImageListPullJob(job *v1beta1.ImageListPullJob) plan.Child {
	c := plan.Child{
		State:   plan.Active,
		Started: plan.TimeOf(job.Status.StartTime),
		Ended:   plan.TimeOf(job.Status.CompletionTime),
	}
	switch {
	case job.Status.CompletionTime == nil:
	case job.Status.Succeeded == job.Status.Desired:
		c.State = plan.Succeeded
	default:
		c.State = plan.Failed
	}
	return c
}

// Jobs returns the settings of the cache of Jobs. It keeps the fields that are read: the metadata of Jobs that an
// AdvancedCronJob controls, and how far they are; of other Jobs only the fields that name them.
func Jobs() cache.ByObject {
	return cache.ByObject{Transform: func(object any) (any, error) {
		job, ok := object.(*batchv1.Job)
		if !ok {
			return fastclient.Trim(object)
		}
		owner := metav1.GetControllerOfNoCopy(job)
		if owner == nil || owner.Kind != v1beta1.AdvancedCronJobKind {
			return &batchv1.Job{ObjectMeta: metav1.ObjectMeta{
				Namespace:       job.Namespace,
				Name:            job.Name,
				UID:             job.UID,
				ResourceVersion: job.ResourceVersion,
			}}, nil
		}
		job.Spec = batchv1.JobSpec{}
		return fastclient.Trim(job)
	}}
}
