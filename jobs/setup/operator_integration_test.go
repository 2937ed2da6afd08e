package setup

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/pflag"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/flotilla-project/flotilla/core/testing/await"
	"github.com/flotilla-project/flotilla/core/testing/testenv"
	"github.com/flotilla-project/flotilla/core/testing/testenv/operators"

	nodeimage "github.com/flotilla-project/flotilla/daemon/api/v1beta1"
	"github.com/flotilla-project/flotilla/jobs/api/v1alpha1"
	"github.com/flotilla-project/flotilla/jobs/api/v1beta1"
	"github.com/flotilla-project/flotilla/jobs/config"
)

var env testenv.Environment

func TestMain(m *testing.M) {
	env.Run(m, testenv.Options{
		CRDs:   []string{filepath.Join("..", "config", "crd"), filepath.Join("..", "internal", "imagepulljob", "testdata"), filepath.Join("..", "internal", "sidecarterminator", "testdata")},
		Scheme: testenv.Scheme(v1beta1.AddToScheme, v1alpha1.AddToScheme, nodeimage.AddToScheme),
	})
}

func flags(t *testing.T, arguments ...string) (*settings, error) {
	t.Helper()
	s := &settings{controllers: allControllers(), ttl: defaultTTL}
	set := pflag.NewFlagSet("", pflag.ContinueOnError)
	s.add(set)
	return s, set.Parse(arguments)
}

func TestControllersAreChosen(t *testing.T) {
	for text, want := range map[string][2]bool{
		"*": {true, true}, "imagepulljob": {true, false}, "*,-imagepulljob": {false, true}, "imagepulljob,imagelistpulljob": {true, true},
	} {
		s, err := flags(t, "--controllers="+text)
		require.NoError(t, err)
		assert.Equal(t, want, [2]bool{s.controllers.run("imagepulljob"), s.controllers.run("imagelistpulljob")}, text)
	}
	_, err := flags(t, "--controllers=cloneset")
	require.ErrorContains(t, err, `unknown controller "cloneset"`)
}

func TestTheSchedulerBindsPodsUnlessToldOtherwise(t *testing.T) {
	for argument, want := range map[string]bool{"": true, "--assign-bcj-pods-by-scheduler=false": false} {
		s, err := flags(t, strings.Fields(argument)...)
		require.NoError(t, err)
		assert.Equal(t, want, s.byScheduler, argument)
	}
}

func TestTheTimeOfTagsIsBounded(t *testing.T) {
	s, err := flags(t, "--default-ttlseconds-for-always-nodeimage=2678400")
	require.NoError(t, err)
	assert.EqualValues(t, 2678400, s.ttl)
	for _, text := range []string{"-1", "2678401", "x"} {
		_, err := flags(t, "--default-ttlseconds-for-always-nodeimage="+text)
		require.ErrorContains(t, err, "default-ttlseconds-for-always-nodeimage")
	}
}

// The manager is refused nothing while a list of images is pulled and jobs of each kind are made and replaced.
func TestTheShippedRolesAreEnough(t *testing.T) {
	env.Need(t)
	c := env.Client(t)
	env.Share(t, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: nodeimage.DefaultConfigNamespace}})
	givenCopierRole(t, c)
	assertAllowed := operators.Granted{
		Env: &env, Operator: Operator(), Files: config.Files, Roles: roles,
	}.Start(t)
	namespace := env.Namespace(t)
	node := &nodeimage.NodeImage{ObjectMeta: metav1.ObjectMeta{Name: "n1"}}
	require.NoError(t, c.Create(t.Context(), node))
	list := &v1beta1.ImageListPullJob{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "list"}}
	list.Spec.Images = []string{"nginx"}
	list.Spec.CompletionPolicy.TTLSecondsAfterFinished = new(int32(0))
	require.NoError(t, c.Create(t.Context(), list))
	await.Until(t, func(check *assert.CollectT) {
		require.NoError(check, c.Get(t.Context(), client.ObjectKey{Name: "n1"}, node))
		require.NotEmpty(check, node.Spec.Images)
	})
	before := client.MergeFrom(node.DeepCopy())
	node.Status.ImageStatuses = map[string]nodeimage.ImageStatus{"nginx": {Tags: []nodeimage.ImageTagStatus{{Tag: "latest", Phase: nodeimage.ImageSucceeded}}}}
	require.NoError(t, c.Status().Patch(t.Context(), node, before))
	await.Until(t, func(check *assert.CollectT) {
		err := c.Get(t.Context(), client.ObjectKeyFromObject(list), list)
		assert.True(check, apierrors.IsNotFound(err), "it has completed, and its time is over")
	})
	for _, kind := range []v1beta1.TemplateKind{v1beta1.TemplateJob, v1beta1.TemplateBroadcastJob, v1beta1.TemplateImageListPullJob} {
		givenReplacingCron(t, c, namespace, kind)
	}
	runsOnANode(t, c, namespace)
	assertAllowed()
}

// givenReplacingCron makes an AdvancedCronJob and waits until a job has taken the place of another one.
func givenReplacingCron(t *testing.T, c client.Client, namespace string, kind v1beta1.TemplateKind) {
	t.Helper()
	cron := &v1beta1.AdvancedCronJob{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: strings.ToLower(string(kind))}}
	cron.Spec.Schedule, cron.Spec.ConcurrencyPolicy = "@every 1s", v1beta1.ReplaceConcurrent
	pod := corev1.PodTemplateSpec{Spec: corev1.PodSpec{
		RestartPolicy: corev1.RestartPolicyNever, Containers: []corev1.Container{{Name: "main", Image: "busybox"}},
	}}
	switch kind {
	case v1beta1.TemplateJob:
		cron.Spec.Template.JobTemplate = &batchv1.JobTemplateSpec{Spec: batchv1.JobSpec{Template: pod}}
	case v1beta1.TemplateBroadcastJob:
		cron.Spec.Template.BroadcastJobTemplate = &v1beta1.BroadcastJobTemplateSpec{Spec: v1beta1.BroadcastJobSpec{Template: pod}}
	case v1beta1.TemplateImageListPullJob:
		spec := v1beta1.ImageListPullJobSpec{Images: []string{"redis"}}
		spec.CompletionPolicy.Type = v1beta1.CompletionAlways
		cron.Spec.Template.ImageListPullJobTemplate = &v1beta1.ImageListPullJobTemplateSpec{Spec: spec}
	}
	require.NoError(t, c.Create(t.Context(), cron))
	seen := map[types.UID]bool{}
	await.Until(t, func(check *assert.CollectT) {
		require.NoError(check, c.Get(t.Context(), client.ObjectKeyFromObject(cron), cron))
		for _, job := range cron.Status.Active {
			seen[job.UID] = true
		}
		assert.Greater(check, len(seen), 1)
	})
}

// runsOnANode has a BroadcastJob run to its end, and its time go by.
func runsOnANode(t *testing.T, c client.Client, namespace string) {
	t.Helper()
	givenEligibleNode(t, c, "n1", nil)
	job := &v1beta1.BroadcastJob{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "job"}}
	job.Spec.CompletionPolicy.TTLSecondsAfterFinished = new(int32(0))
	job.Spec.Template.Spec = corev1.PodSpec{
		RestartPolicy: corev1.RestartPolicyNever, Containers: []corev1.Container{{Name: "main", Image: "busybox"}},
	}
	require.NoError(t, c.Create(t.Context(), job))
	await.Until(t, func(check *assert.CollectT) {
		var pods corev1.PodList
		require.NoError(check, c.List(t.Context(), &pods, client.InNamespace(namespace), client.MatchingLabels{v1beta1.BroadcastJobNameLabel: job.Name}))
		require.Len(check, pods.Items, 1)
		pods.Items[0].Status.Phase = corev1.PodSucceeded
		require.NoError(check, c.Status().Update(t.Context(), &pods.Items[0]))
	})
	await.Until(t, func(check *assert.CollectT) {
		assert.True(check, apierrors.IsNotFound(c.Get(t.Context(), client.ObjectKeyFromObject(job), job)), "its time is over")
	})
}
