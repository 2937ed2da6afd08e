package scale

import (
	"context"
	"fmt"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	jobs "github.com/flotilla-project/flotilla/jobs/api/v1beta1"
)

const (
	// cronLead is how long the creation of all crons may take, and cronLeadEach what each of them adds.
	cronLead, cronLeadEach = 30 * time.Second, 30 * time.Millisecond
	zone                   = "Etc/UTC"
)

// cronKind is a kind of crons.
type cronKind struct {
	load  string
	who   controller
	new   func(schedule string, template batchv1.JobTemplateSpec) client.Object
	list  client.ObjectList
	ended func() int // how many of the list have had a job that has succeeded
}

// crons measures AdvancedCronJobs whose jobs are all due in the same minute.
func (b *bench) crons(ctx context.Context) ([]Row, error) {
	list := &jobs.AdvancedCronJobList{}
	return b.sameMinute(ctx, cronKind{
		load: "AdvancedCronJobs of one minute",
		who:  b.ofOperator("advancedcronjob"),
		list: list,
		new: func(schedule string, template batchv1.JobTemplateSpec) client.Object {
			cron := &jobs.AdvancedCronJob{}
			cron.Spec.Schedule = schedule
			cron.Spec.TimeZone = new(zone)
			cron.Spec.Template.JobTemplate = &template
			return cron
		},
		ended: func() int {
			return count(list.Items, func(c *jobs.AdvancedCronJob) bool {
				return c.Status.LastSuccessfulTime != nil && len(c.Status.Active) == 0
			})
		},
	})
}

// builtInCrons measures as many CronJobs.
func (b *bench) builtInCrons(ctx context.Context) ([]Row, error) {
	list := &batchv1.CronJobList{}
	return b.sameMinute(ctx, cronKind{
		load: "CronJobs of one minute",
		who:  controller{b.controllerManager, "cronjob-controller"},
		list: list,
		new: func(schedule string, template batchv1.JobTemplateSpec) client.Object {
			return &batchv1.CronJob{Spec: batchv1.CronJobSpec{
				Schedule:    schedule,
				TimeZone:    new(zone),
				JobTemplate: template,
			}}
		},
		ended: func() int {
			return count(list.Items, func(c *batchv1.CronJob) bool { return c.Status.LastSuccessfulTime != nil && len(c.Status.Active) == 0 })
		},
	})
}

func count[T any](items []T, is func(*T) bool) (n int) {
	for i := range items {
		if is(&items[i]) {
			n++
		}
	}
	return n
}

// sameMinute creates crons and measures from the minute on in which their jobs are due until all have succeeded.
func (b *bench) sameMinute(ctx context.Context, kind cronKind) ([]Row, error) {
	space, err := b.namespace(ctx)
	if err != nil {
		return nil, err
	}
	due := time.Now().UTC().Add(cronLead + time.Duration(b.Pods)*cronLeadEach).Truncate(time.Minute).Add(time.Minute)
	b.tell("making what is due at %s", due.Format(time.TimeOnly))
	made := func(i int) client.Object {
		cron := kind.new(fmt.Sprintf("%d %d * * *", due.Minute(), due.Hour()), jobTemplate())
		cron.SetNamespace(space)
		cron.SetName(podName(i))
		return cron
	}
	if err := b.accepted(ctx, made(0)); err != nil {
		return nil, err
	}
	err = forEach(ctx, b.Pods-1, func(ctx context.Context, i int) error { return b.client.Create(ctx, made(i+1)) })
	if err != nil {
		return nil, fmt.Errorf("create a cron: %w", err)
	}
	if left := time.Until(due); left < 0 {
		return nil, fmt.Errorf("the jobs were due %s before all crons were there", -left)
	}
	time.Sleep(time.Until(due) - settling)
	row, err := b.cost(ctx, Row{Load: kind.load, Pods: b.Pods, Of: "jobs"}, kind.who, func() (time.Time, error) {
		time.Sleep(time.Until(due))
		return due, awaitEvery(ctx, slow, "the end of all jobs", func() (bool, error) {
			err := b.client.List(ctx, kind.list, client.InNamespace(space), &client.ListOptions{Raw: &metav1.ListOptions{ResourceVersion: "0"}})
			return err == nil && kind.ended() == b.Pods, err
		})
	})
	if err != nil {
		return nil, err
	}
	return []Row{row}, b.client.DeleteAllOf(ctx, made(0), client.InNamespace(space), client.PropagationPolicy(metav1.DeletePropagationBackground))
}

// jobTemplate is that of jobs that succeed at once.
func jobTemplate() batchv1.JobTemplateSpec {
	pod := podSpec(imageEnds)
	pod.RestartPolicy = corev1.RestartPolicyNever
	return batchv1.JobTemplateSpec{Spec: batchv1.JobSpec{Template: corev1.PodTemplateSpec{Spec: pod}}}
}
