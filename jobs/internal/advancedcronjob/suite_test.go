package advancedcronjob_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/flotilla-project/flotilla/core/controllers/fastclient"
	"github.com/flotilla-project/flotilla/core/controllers/pass"
	"github.com/flotilla-project/flotilla/core/testing/await"
	"github.com/flotilla-project/flotilla/core/testing/testenv"

	"github.com/flotilla-project/flotilla/jobs/api/v1beta1"
	"github.com/flotilla-project/flotilla/jobs/internal/advancedcronjob"
)

const userAgent = "jobs-manager/advancedcronjob"

var env testenv.Environment

func TestMain(m *testing.M) {
	env.Run(m, testenv.Options{
		CRDs: []string{"../../config/crd/advancedcronjobs.yaml"}, Scheme: testenv.Scheme(v1beta1.AddToScheme),
	})
}

// givenController runs the controller until the end of the test.
func givenController(t *testing.T, env testenv.Environment) client.Client {
	t.Helper()
	return givenControllerIn(t, env, "")
}

// givenControllerIn runs the controller in one namespace.
func givenControllerIn(t *testing.T, env testenv.Environment, namespace string) client.Client {
	t.Helper()
	cached := fastclient.CacheOptions(namespace, map[client.Object]cache.ByObject{
		&batchv1.Job{}: fastclient.Within(namespace, advancedcronjob.Jobs()),
	})
	return env.Control(t, cached, func(mgr manager.Manager, reader fastclient.Options) error {
		return advancedcronjob.SetUp(t.Context(), mgr, advancedcronjob.Options{
			Settings: pass.Settings{Reader: reader, UserAgent: userAgent, Namespace: namespace},
		})
	})
}

// givenKinds has the cluster serve all kinds of jobs until the test ends.
func givenKinds(t *testing.T) {
	t.Helper()
	env.Need(t)
	env.Serve(t, envtest.CRDInstallOptions{Paths: []string{
		"../../config/crd/broadcastjobs.yaml", "../../config/crd/imagelistpulljobs.yaml",
	}})
}

// pod is a template of pods.
func pod() corev1.PodTemplateSpec {
	return corev1.PodTemplateSpec{Spec: corev1.PodSpec{
		RestartPolicy: corev1.RestartPolicyNever, Containers: []corev1.Container{{Name: "main", Image: "busybox"}},
	}}
}

// givenCron makes an AdvancedCronJob that makes Jobs.
func givenCron(t *testing.T, c client.Client, schedule string, changes ...func(*v1beta1.AdvancedCronJob)) *v1beta1.AdvancedCronJob {
	t.Helper()
	cron := &v1beta1.AdvancedCronJob{ObjectMeta: metav1.ObjectMeta{Namespace: env.Namespace(t), Name: "cron"}}
	cron.Spec.Schedule = schedule
	cron.Spec.Template.JobTemplate = &batchv1.JobTemplateSpec{
		ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"of": "cron"}}, Spec: batchv1.JobSpec{Template: pod()},
	}
	for _, change := range changes {
		change(cron)
	}
	require.NoError(t, c.Create(t.Context(), cron))
	return cron
}

// eventually reads the AdvancedCronJob until the assertions about it hold.
func eventually(t *testing.T, c client.Client, cron *v1beta1.AdvancedCronJob, check func(*assert.CollectT, *v1beta1.AdvancedCronJob)) {
	t.Helper()
	await.Until(t, func(collect *assert.CollectT) {
		var now v1beta1.AdvancedCronJob
		require.NoError(collect, c.Get(t.Context(), client.ObjectKeyFromObject(cron), &now))
		check(collect, &now)
	})
}

// scheduling returns the reason of the condition.
func scheduling(cron *v1beta1.AdvancedCronJob) string {
	for _, condition := range cron.Status.Conditions {
		if condition.Type == v1beta1.CronJobScheduling {
			return condition.Reason
		}
	}
	return ""
}

func jobs(t *testing.T, c client.Client, namespace string) []batchv1.Job {
	t.Helper()
	list := &batchv1.JobList{}
	require.NoError(t, c.List(t.Context(), list, client.InNamespace(namespace)))
	return list.Items
}

// complete lets a Job succeed, as the controller of Jobs does.
func complete(t *testing.T, c client.Client, job *batchv1.Job) {
	t.Helper()
	end(t, c, job, batchv1.JobSuccessCriteriaMet, batchv1.JobComplete)
}

// fail lets a Job fail, as the controller of Jobs does.
func fail(t *testing.T, c client.Client, job *batchv1.Job) {
	t.Helper()
	end(t, c, job, batchv1.JobFailureTarget, batchv1.JobFailed)
}

func end(t *testing.T, c client.Client, job *batchv1.Job, conditions ...batchv1.JobConditionType) {
	t.Helper()
	before := client.MergeFrom(job.DeepCopy())
	now := metav1.NewTime(time.Now())
	job.Status.StartTime = &now
	for _, kind := range conditions {
		job.Status.Conditions = append(job.Status.Conditions, batchv1.JobCondition{Type: kind, Status: corev1.ConditionTrue, LastTransitionTime: now})
		if kind == batchv1.JobComplete { // the server refuses the time of another end
			job.Status.CompletionTime, job.Status.Succeeded = &now, 1
		}
	}
	require.NoError(t, c.Status().Patch(t.Context(), job, before))
}
