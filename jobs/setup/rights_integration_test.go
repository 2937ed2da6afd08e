package setup

import (
	"context"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/flotilla-project/flotilla/core/testing/await"
	"github.com/flotilla-project/flotilla/core/testing/testenv/operators"

	daemon "github.com/flotilla-project/flotilla/daemon/api/v1beta1"
	"github.com/flotilla-project/flotilla/jobs/api/v1beta1"
	"github.com/flotilla-project/flotilla/jobs/config"
	"github.com/flotilla-project/flotilla/jobs/internal/imagepulljob/plan"
	sidecars "github.com/flotilla-project/flotilla/jobs/internal/sidecarterminator/plan"
)

// Without the Role by which pull secrets are copied, taken away before the start or while the operator runs, jobs with
// pull secrets say what is lacking and wait for it, and all others go on. The same holds for what SidecarTerminator needs.
func TestALackingRightCostsNothingElse(t *testing.T) {
	env.Need(t)
	c := env.Client(t)
	require.NoError(t, client.IgnoreAlreadyExists(c.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: daemon.DefaultConfigNamespace}})))
	operators.Granted{
		Env: &env, Operator: Operator(), Files: config.Files, Roles: roles,
		Flags: []string{"--feature-gates=SidecarTerminator=true"},
	}.Start(t)
	namespace := env.Namespace(t)
	node := givenNodeAndRegistry(t, c, namespace, "rights-"+namespace)

	before := givenPull(t, c, namespace, node, "secret-before:1", "registry")
	lacksRights(t, c, before)
	assertOthersRun(t, c, namespace, node, "before")
	givenRestrictedSidecar(t, c, namespace)

	takeAway := givenCopierRole(t, c)
	isPulled(t, c, node, "secret-before")
	takeAway()
	after := givenPull(t, c, namespace, node, "secret-after:1", "registry")
	lacksRights(t, c, after)
	assertOthersRun(t, c, namespace, node, "after")

	givenCopierRole(t, c)
	isPulled(t, c, node, "secret-after")
	for _, job := range []*v1beta1.ImagePullJob{before, after} {
		require.NoError(t, c.Delete(t.Context(), job))
	}
	await.Until(t, func(check *assert.CollectT) {
		for _, job := range []*v1beta1.ImagePullJob{before, after} {
			assert.True(check, apierrors.IsNotFound(c.Get(t.Context(), client.ObjectKeyFromObject(job), job)), "its copy is released")
		}
	})
}

// Without component pullsecrets the manager may read no secret of users: jobs with pull secrets say which one they wait for, and
// all others go on. They begin when the component is added, without a restart.
func TestWithoutPullSecretsOtherJobsRun(t *testing.T) {
	env.Need(t)
	c := env.Client(t)
	require.NoError(t, client.IgnoreAlreadyExists(c.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: daemon.DefaultConfigNamespace}})))
	givenCopierRole(t, c)
	require.NoError(t, client.IgnoreNotFound(c.Delete(t.Context(), &rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: "jobs-manager-pullsecrets"}})))
	component := []string{"pullsecrets/role.yaml"}
	left := slices.DeleteFunc(slices.Clone(roles), func(r string) bool { return slices.Contains(component, r) })
	require.Len(t, left, len(roles)-1)
	operators.Granted{Env: &env, Operator: Operator(), Files: config.Files, Roles: left}.Start(t)
	namespace := env.Namespace(t)
	node := givenNodeAndRegistry(t, c, namespace, "narrow-"+namespace)

	job := givenPull(t, c, namespace, node, "narrow-secret:1", "registry")
	await.Until(t, func(check *assert.CollectT) {
		require.NoError(check, c.Get(t.Context(), client.ObjectKeyFromObject(job), job))
		assert.Contains(check, job.Status.Message, "the operator has no permission to get secret registry; install component pullsecrets of feature jobs")
		assert.Contains(check, reasonsOf(t, check, c, job), plan.EventSecretsForbidden)
	})
	assertOthersRun(t, c, namespace, node, "narrow")
	require.NoError(t, c.Get(t.Context(), client.ObjectKeyFromObject(node), node))
	assert.NotContains(t, node.Spec.Images, "narrow-secret", "it waits")

	env.Install(t, config.Files, component...)
	isPulled(t, c, node, "narrow-secret")
	require.NoError(t, c.Delete(t.Context(), job))
	await.Until(t, func(check *assert.CollectT) {
		assert.True(check, apierrors.IsNotFound(c.Get(t.Context(), client.ObjectKeyFromObject(job), job)), "its copy is released")
	})
}

// givenNodeAndRegistry returns the NodeImage of a new node. Pull secret registry is in the namespace.
func givenNodeAndRegistry(t *testing.T, c client.Client, namespace, name string) *daemon.NodeImage {
	t.Helper()
	node := &daemon.NodeImage{ObjectMeta: metav1.ObjectMeta{Name: name}}
	require.NoError(t, c.Create(t.Context(), node))
	givenEligibleNode(t, c, node.Name, nil)
	require.NoError(t, c.Create(t.Context(), &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "registry"}, Type: corev1.SecretTypeDockerConfigJson,
		Data: map[string][]byte{corev1.DockerConfigJsonKey: []byte("{}")},
	}))
	return node
}

func givenPull(t *testing.T, c client.Client, namespace string, node *daemon.NodeImage, image string, secrets ...string) *v1beta1.ImagePullJob {
	t.Helper()
	job := &v1beta1.ImagePullJob{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, GenerateName: "pull-"}}
	job.Spec.Image, job.Spec.PullSecrets = image, secrets
	job.Spec.Selector = &v1beta1.ImagePullJobNodeSelector{Names: []string{node.Name}}
	require.NoError(t, c.Create(t.Context(), job))
	return job
}

func isPulled(t *testing.T, c client.Client, node *daemon.NodeImage, image string) {
	t.Helper()
	await.Until(t, func(check *assert.CollectT) {
		require.NoError(check, c.Get(t.Context(), client.ObjectKeyFromObject(node), node))
		assert.Contains(check, node.Spec.Images, image)
	})
}

func lacksRights(t *testing.T, c client.Client, job *v1beta1.ImagePullJob) {
	t.Helper()
	await.Until(t, func(check *assert.CollectT) {
		require.NoError(check, c.Get(t.Context(), client.ObjectKeyFromObject(job), job))
		assert.Contains(check, job.Status.Message, plan.MessageSecretsForbidden)
		assert.Contains(check, reasonsOf(t, check, c, job), plan.EventSecretsForbidden)
	})
	assert.Contains(t, job.Status.Message, "has no permission to list, watch, create, patch, delete secrets in namespace kruise-daemon-config")
}

func reasonsOf(t *testing.T, check *assert.CollectT, c client.Client, about client.Object) (reasons []string) {
	t.Helper()
	var events eventsv1.EventList
	require.NoError(check, c.List(t.Context(), &events, client.InNamespace(about.GetNamespace())))
	for i := range events.Items {
		if events.Items[i].Regarding.UID == about.GetUID() {
			reasons = append(reasons, events.Items[i].Reason)
		}
	}
	return reasons
}

// assertOthersRun makes a job of each other kind, and waits until each has done something.
func assertOthersRun(t *testing.T, c client.Client, namespace string, node *daemon.NodeImage, when string) {
	t.Helper()
	cron, broadcast := givenCron(t, c, namespace, "cron-"+when), givenBroadcast(t, c, namespace, "broadcast-"+when)
	list := &v1beta1.ImageListPullJob{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "list-" + when}}
	list.Spec.Images = []string{"open-" + when + ":1"}
	list.Spec.Selector = &v1beta1.ImagePullJobNodeSelector{Names: []string{node.Name}}
	require.NoError(t, c.Create(t.Context(), list))
	isPulled(t, c, node, "open-"+when)
	await.Until(t, func(check *assert.CollectT) {
		require.NoError(check, c.Get(t.Context(), client.ObjectKeyFromObject(cron), cron))
		assert.NotNil(check, cron.Status.LastScheduleTime)
		var pods corev1.PodList
		require.NoError(check, c.List(t.Context(), &pods, client.InNamespace(namespace), client.MatchingLabels{v1beta1.BroadcastJobNameLabel: broadcast.Name}))
		assert.NotEmpty(check, pods.Items)
	})
	require.NoError(t, c.Delete(t.Context(), cron))
}

// podTemplate is that of jobs of either kind.
func podTemplate() corev1.PodTemplateSpec {
	return corev1.PodTemplateSpec{Spec: corev1.PodSpec{
		RestartPolicy: corev1.RestartPolicyNever, Containers: []corev1.Container{{Name: "main", Image: "busybox"}},
	}}
}

// givenCron makes an AdvancedCronJob that makes a Job every second.
func givenCron(t *testing.T, c client.Client, namespace, name string) *v1beta1.AdvancedCronJob {
	t.Helper()
	cron := &v1beta1.AdvancedCronJob{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
	cron.Spec.Schedule = "@every 1s"
	cron.Spec.Template.JobTemplate = &batchv1.JobTemplateSpec{Spec: batchv1.JobSpec{Template: podTemplate()}}
	require.NoError(t, c.Create(t.Context(), cron))
	return cron
}

func givenBroadcast(t *testing.T, c client.Client, namespace, name string) *v1beta1.BroadcastJob {
	t.Helper()
	broadcast := &v1beta1.BroadcastJob{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
	broadcast.Spec.Template = podTemplate()
	require.NoError(t, c.Create(t.Context(), broadcast))
	return broadcast
}

// givenRestrictedSidecar makes a pod whose sidecar cannot be stopped, and waits until it says so.
func givenRestrictedSidecar(t *testing.T, c client.Client, namespace string) {
	t.Helper()
	pod := givenFinishedPod(t, c, namespace, givenNode(t, c, "restricted-"+namespace, nil))
	await.Until(t, func(check *assert.CollectT) {
		assert.Contains(check, reasonsOf(t, check, c, pod), sidecars.EventUnavailable)
	})
}

// givenCopierRole grants what module daemon grants in its namespace of pull secrets, until the end of the test or until
// it is taken away. The API server knows of either when the call returns.
func givenCopierRole(t *testing.T, c client.Client) (takeAway func()) {
	t.Helper()
	meta := metav1.ObjectMeta{Namespace: daemon.DefaultConfigNamespace, Name: "daemon-pull-secrets"}
	binding := &rbacv1.RoleBinding{
		ObjectMeta: meta, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: meta.Name},
		Subjects: []rbacv1.Subject{{Kind: "ServiceAccount", Namespace: "flotilla-system", Name: "jobs-manager"}},
	}
	rule := rbacv1.PolicyRule{
		APIGroups: []string{""}, Resources: []string{"secrets"}, Verbs: []string{"list", "watch", "create", "patch", "delete"},
	}
	const manager = "system:serviceaccount:flotilla-system:jobs-manager"
	require.NoError(t, client.IgnoreAlreadyExists(c.Create(t.Context(), &rbacv1.Role{ObjectMeta: meta, Rules: []rbacv1.PolicyRule{rule}})))
	require.NoError(t, c.Create(t.Context(), binding))
	env.AwaitRights(t, manager, meta.Namespace, rule)
	remove := func() {
		require.NoError(t, client.IgnoreNotFound(c.Delete(context.WithoutCancel(t.Context()), binding)))
	}
	t.Cleanup(remove)
	return func() {
		remove()
		env.AwaitLoss(t, manager, meta.Namespace, rule)
	}
}
