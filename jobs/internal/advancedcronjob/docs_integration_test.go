package advancedcronjob_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/flotilla-project/flotilla/core/testing/await"
	"github.com/flotilla-project/flotilla/core/testing/docs"

	"github.com/flotilla-project/flotilla/jobs/api/v1beta1"
	"github.com/flotilla-project/flotilla/jobs/internal/advancedcronjob/plan"
)

// Users look up in the feature's page, and in that of conditions and events, what conditions, missed runs and events say.
func TestThePageExplainsEveryWord(t *testing.T) {
	docs.Feature(t, "advancedcronjob", "reference/events-of-jobs").Names(plan.Reasons, []string{
		v1beta1.ScheduledAtAnnotation, string(v1beta1.AllowConcurrent), string(v1beta1.ForbidConcurrent), string(v1beta1.ReplaceConcurrent), v1beta1.CronJobScheduling, v1beta1.CronJobLastRunSucceeded,
	})
}

func TestTheExamplesOfThePageAreFollowed(t *testing.T) {
	givenKinds(t)
	page := docs.Feature(t, "advancedcronjob")
	c := givenController(t, env)
	namespace := env.Namespace(t)
	var crons []*v1beta1.AdvancedCronJob
	for _, example := range page.Examples() {
		if example.Patches == "" {
			o := &unstructured.Unstructured{}
			require.NoError(t, yaml.Unmarshal([]byte(example.YAML), &o.Object))
			o.SetNamespace(namespace)
			require.NoError(t, c.Create(t.Context(), o, client.FieldValidation(metav1.FieldValidationStrict)))
			crons = append(crons, &v1beta1.AdvancedCronJob{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: o.GetName()}})
			continue
		}
		patch, err := yaml.YAMLToJSON([]byte(example.YAML))
		require.NoError(t, err)
		cron := &v1beta1.AdvancedCronJob{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: example.Patches}}
		require.NoError(t, c.Patch(t.Context(), cron, client.RawPatch(types.MergePatchType, patch)))
		await.Until(t, func(collect *assert.CollectT) {
			made := jobs(t, c, namespace)
			require.Len(collect, made, 1)
			assert.Equal(collect, "ticket-4711", made[0].Annotations[v1beta1.RunNowAnnotation])
		})
	}
	for _, cron := range crons {
		eventually(t, c, cron, func(collect *assert.CollectT, cron *v1beta1.AdvancedCronJob) {
			assert.Equal(collect, plan.ReasonAsScheduled, scheduling(cron))
			assert.NotNil(collect, cron.Status.NextScheduleTime)
		})
	}
	assert.Len(t, crons, 3)
}
