package jobs

import (
	"context"
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	batchv1 "k8s.io/api/batch/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/flotilla-project/flotilla/jobs/api/v1beta1"

	"github.com/flotilla-project/flotilla/test/story"
)

const scheduling = "Scheduling"

// A job of each kind is made at once, long before it is due, and its end is told.
func TestAJobIsMadeAtOnce(t *testing.T) {
	t.Parallel()
	const image = "example.com/cron/image:v1"
	publish(t, "v3", image)
	template := newTemplate("sleep", "1s")
	images := v1beta1.ImageListPullJobSpec{Images: []string{image}}
	images.CompletionPolicy.Type = v1beta1.CompletionAlways
	for _, c := range []struct {
		kind     v1beta1.TemplateKind
		template v1beta1.CronJobTemplate
		made     client.ObjectList
	}{
		{v1beta1.TemplateJob, v1beta1.CronJobTemplate{JobTemplate: &batchv1.JobTemplateSpec{
			Spec: batchv1.JobSpec{Template: template},
		}}, &batchv1.JobList{}},
		{v1beta1.TemplateBroadcastJob, v1beta1.CronJobTemplate{BroadcastJobTemplate: &v1beta1.BroadcastJobTemplateSpec{
			Spec: v1beta1.BroadcastJobSpec{Template: template},
		}}, &v1beta1.BroadcastJobList{}},
		{v1beta1.TemplateImageListPullJob, v1beta1.CronJobTemplate{ImageListPullJobTemplate: &v1beta1.ImageListPullJobTemplateSpec{
			Spec: images,
		}}, &v1beta1.ImageListPullJobList{}},
	} {
		t.Run(string(c.kind), func(t *testing.T) {
			t.Parallel()
			cron := newCron(t, "@yearly", c.template)
			require.NoError(t, world.Client.Create(t.Context(), cron))
			story.Reaches(t, world, cron, "a time for the next job", func(cron *v1beta1.AdvancedCronJob) error {
				return story.Want(story.Condition(cron, scheduling).Status == metav1.ConditionTrue && cron.Status.NextScheduleTime != nil, "status is %+v", cron.Status)
			})
			assert.Equal(t, c.kind, cron.Status.Type)

			story.Edit(t, world, cron, func(cron *v1beta1.AdvancedCronJob) {
				metav1.SetMetaDataAnnotation(&cron.ObjectMeta, v1beta1.RunNowAnnotation, "story")
			})
			story.Reaches(t, world, cron, "the end of the job", func(cron *v1beta1.AdvancedCronJob) error {
				s := &cron.Status
				return story.Want(s.LastRunNow == "story" && s.LastSuccessfulTime != nil && len(s.Active) == 0, "status is %+v", s)
			})
			assert.Nil(t, cron.Status.LastScheduleTime)
			require.NoError(t, world.Client.List(t.Context(), c.made, client.InNamespace(cron.Namespace)))
			made := items(t, c.made)
			require.Len(t, made, 1)
			assert.True(t, metav1.IsControlledBy(made[0], cron))
			assert.Equal(t, "story", made[0].GetAnnotations()[v1beta1.RunNowAnnotation])
		})
	}
}

// Jobs are made when they are due, one of those that have ended is kept, and none is made during a pause.
func TestJobsAreMadeByASchedule(t *testing.T) {
	t.Parallel()
	template := batchv1.JobTemplateSpec{Spec: batchv1.JobSpec{Template: newTemplate("sleep", "0s")}}
	cron := newCron(t, "@every 3s", v1beta1.CronJobTemplate{JobTemplate: &template})
	cron.Spec.ConcurrencyPolicy = v1beta1.ForbidConcurrent
	cron.Spec.SuccessfulJobsHistoryLimit = new(int32(1))
	require.NoError(t, world.Client.Create(t.Context(), cron))
	seen := map[string]bool{}
	story.Eventually(t, "three jobs", func(ctx context.Context) error {
		list := &batchv1.JobList{}
		if err := world.Client.List(ctx, list, client.InNamespace(cron.Namespace)); err != nil {
			return err
		}
		for i := range list.Items {
			seen[list.Items[i].Name] = true
		}
		return story.Want(len(seen) >= 3, "only %v were made", seen)
	})
	story.Edit(t, world, cron, func(cron *v1beta1.AdvancedCronJob) { cron.Spec.Paused = new(true) })
	story.Reaches(t, world, cron, "a pause", func(cron *v1beta1.AdvancedCronJob) error {
		s := &cron.Status
		return story.Want(story.Condition(cron, scheduling).Reason == "Paused" && s.NextScheduleTime == nil && len(s.Active) == 0, "status is %+v", s)
	})
	require.NotNil(t, cron.Status.LastScheduleTime)
	assert.NotNil(t, cron.Status.LastSuccessfulTime)
	story.Eventually(t, "the end of all jobs but the last", func(ctx context.Context) error {
		list := &batchv1.JobList{}
		err := world.Client.List(ctx, list, client.InNamespace(cron.Namespace))
		last := fmt.Sprintf("%s-%d", cron.Name, cron.Status.LastScheduleTime.Unix())
		return story.Want(err == nil && len(list.Items) == 1 && list.Items[0].Name == last, "jobs are %+v (%v)", list.Items, err)
	})
}

func newCron(t *testing.T, schedule string, template v1beta1.CronJobTemplate) *v1beta1.AdvancedCronJob {
	t.Helper()
	cron := &v1beta1.AdvancedCronJob{ObjectMeta: metav1.ObjectMeta{Namespace: world.Namespace(t), Name: "cron"}}
	cron.Spec.Schedule, cron.Spec.Template = schedule, template
	return cron
}

func items(t *testing.T, list client.ObjectList) []metav1.Object {
	t.Helper()
	var all []metav1.Object
	require.NoError(t, meta.EachListItem(list, func(o runtime.Object) error {
		all = append(all, o.(metav1.Object))
		return nil
	}))
	return all
}
