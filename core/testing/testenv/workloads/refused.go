package workloads

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/flotilla-project/flotilla/core/pods/podstate"
	"github.com/flotilla-project/flotilla/core/testing/await"
	"github.com/flotilla-project/flotilla/core/testing/testenv"
)

// mostRequests is how many requests an operator may make for one object in the way at first.
const mostRequests = 10

// Refused has the tests of a workload's operator whose writes the API server refuses. They wait for most of their time and
// run beside each other, each in a namespace of its own.
type Refused struct {
	// Env is the environment, with nodes that run pods.
	Env *testenv.Environment
	// UserAgent is the operator's.
	UserAgent string
	// Resource is the plural of the kind.
	Resource string
	// Start runs the operator in the namespace until the end of the test.
	Start func(t *testing.T, namespace string)
	// StartAs is Start for an operator with the client configuration.
	StartAs func(t *testing.T, config *rest.Config, namespace string)
	// Role is what the operator may do.
	Role rbacv1.ClusterRole
	// New is a set of that many pods with image app:1, which are updated in place one at a time.
	New func(namespace string, replicas int32) client.Object
	// SetImage changes the image of the set.
	SetImage func(set client.Object, image string)
	// Condition is the message of the set's condition with the name while it is True, else empty.
	Condition func(set client.Object, name string) string
	// FailedUpdate and FailedScale are the names of the conditions.
	FailedUpdate, FailedScale string
}

// TestUpdate lets a policy refuse the image of an in-place update.
func (r Refused) TestUpdate(t *testing.T) {
	t.Parallel()
	c, ns := r.Env.Client(t), r.Env.Namespace(t)
	set := r.New(ns, 3)
	image := func(name string) (pods int) {
		for _, o := range r.pods(t, c, set) {
			if o.Spec.Containers[0].Image == name && podstate.Of(&o, time.Now(), 0).Ready {
				pods++
			}
		}
		return pods
	}
	allow := func() {}
	audit := r.Env.AuditOf(t, ns)
	t.Run("refused", func(t *testing.T) {
		r.Start(t, ns)
		require.NoError(t, c.Create(t.Context(), set))
		await.Until(t, func(collect *assert.CollectT) { assert.Equal(collect, 3, image("app:1")) })
		allow = r.forbid(t, c, set, "app:2")
		audit = r.Env.AuditOf(t, ns)
		r.edit(t, c, set, "app:2")
		begun := time.Now()
		await.Until(t, func(collect *assert.CollectT) { assert.GreaterOrEqual(collect, r.trials(t, audit), 4) })
		writes := audit.Writes(t, r.UserAgent)
		t.Logf("in %s: %v, and %d dry runs", time.Since(begun).Round(time.Second), writes, r.trials(t, audit))
		assert.Equal(t, 1, writes["patch pods"], "one pod tries, the others rehearse")
		assert.Equal(t, 2, writes["patch pods/status"], "it leaves service once and comes back")
		requests := r.trials(t, audit)
		for _, n := range writes {
			requests += n
		}
		assert.LessOrEqual(t, requests, mostRequests*3, "for three pods in the way")
		assert.Equal(t, 3, image("app:1"))
		require.NoError(t, c.Get(t.Context(), client.ObjectKeyFromObject(set), set))
		assert.Contains(t, r.Condition(set, r.FailedUpdate), "ValidatingAdmissionPolicy '"+ns+"'")
		r.assertEventsAreCountedUp(t, c, ns, 3)
	})
	t.Run("refused to the next operator", func(t *testing.T) {
		audit = r.Env.AuditOf(t, ns)
		r.Start(t, ns)
		await.Until(t, func(collect *assert.CollectT) { assert.GreaterOrEqual(collect, r.trials(t, audit), 2) })
		writes := audit.Writes(t, r.UserAgent)
		assert.Zero(t, writes["patch pods"]+writes["patch pods/status"], "the set says that it was refused: %v", writes)
	})
	t.Run("allowed", func(t *testing.T) {
		r.Start(t, ns)
		allow()
		await.Until(t, func(collect *assert.CollectT) { assert.Equal(collect, 3, image("app:2")) })
	})
}

// TestCreation lets a quota refuse pods.
func (r Refused) TestCreation(t *testing.T) {
	t.Parallel()
	c, ns := r.Env.Client(t), r.Env.Namespace(t)
	quota := &corev1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "two"}}
	quota.Spec.Hard = corev1.ResourceList{corev1.ResourcePods: resource.MustParse("2")}
	require.NoError(t, c.Create(t.Context(), quota))
	quota.Status.Hard = quota.Spec.Hard
	quota.Status.Used = corev1.ResourceList{corev1.ResourcePods: resource.MustParse("0")}
	require.NoError(t, c.Status().Update(t.Context(), quota))
	audit := r.Env.AuditOf(t, ns)
	r.Start(t, ns)
	set := r.New(ns, 5)
	require.NoError(t, c.Create(t.Context(), set))
	begun := time.Now()
	refused := func() int { return audit.Writes(t, r.UserAgent)["create pods"] - len(r.pods(t, c, set)) }
	await.Until(t, func(collect *assert.CollectT) { assert.GreaterOrEqual(collect, refused(), 6) })
	writes := audit.Writes(t, r.UserAgent)
	t.Logf("in %s: %v", time.Since(begun).Round(time.Second), writes)
	assert.Greater(t, time.Since(begun), 10*time.Second, "after the first, which are side by side, they come after 1, 2, 4 and 8 seconds")
	assert.LessOrEqual(t, writes["patch "+r.Resource+"/status"], 10)
	require.NoError(t, c.Get(t.Context(), client.ObjectKeyFromObject(set), set))
	message := r.Condition(set, r.FailedScale)
	assert.Contains(t, message, "exceeded quota: two")
	r.assertEventsAreCountedUp(t, c, ns, 1)
	require.NoError(t, c.Delete(t.Context(), quota))
	await.Until(t, func(collect *assert.CollectT) { assert.Len(collect, r.pods(t, c, set), 5) })
}

// TestRights removes the operator's right to patch pods, and restores it.
func (r Refused) TestRights(t *testing.T) {
	t.Parallel()
	c, ns := r.Env.Client(t), r.Env.Namespace(t)
	role := r.without(t, c, ns, "pods", "patch")
	r.StartAs(t, r.Env.User(t, ns), ns)
	set := r.New(ns, 3)
	require.NoError(t, c.Create(t.Context(), set))
	image := func(name string) (pods int) {
		for _, o := range r.pods(t, c, set) {
			if o.Spec.Containers[0].Image == name && podstate.Of(&o, time.Now(), 0).Ready {
				pods++
			}
		}
		return pods
	}
	await.Until(t, func(collect *assert.CollectT) { assert.Equal(collect, 3, image("app:1")) })
	audit := r.Env.AuditOf(t, ns)
	r.edit(t, c, set, "app:2")
	begun := time.Now()
	await.Until(t, func(collect *assert.CollectT) { assert.GreaterOrEqual(collect, r.trials(t, audit), 2) })
	writes := audit.Writes(t, r.UserAgent)
	t.Logf("in %s: %v, and %d dry runs", time.Since(begun).Round(time.Second), writes, r.trials(t, audit))
	requests := r.trials(t, audit)
	for _, n := range writes {
		requests += n
	}
	assert.LessOrEqual(t, requests, mostRequests*3, "for three pods in the way")
	assert.Equal(t, 3, image("app:1"), "all pods serve")
	require.NoError(t, c.Get(t.Context(), client.ObjectKeyFromObject(set), set))
	assert.Contains(t, r.Condition(set, r.FailedUpdate), `User "`+ns+`" cannot patch resource "pods"`)
	r.assertEventsAreCountedUp(t, c, ns, 3)
	role.Rules = r.Role.Rules
	require.NoError(t, c.Update(t.Context(), role))
	await.Until(t, func(collect *assert.CollectT) { assert.Equal(collect, 3, image("app:2")) })
}

// edit gives the pods of the set another image, again where the status was written meanwhile.
func (r Refused) edit(t *testing.T, c client.Client, set client.Object, image string) {
	t.Helper()
	require.NoError(t, retry.RetryOnConflict(retry.DefaultBackoff, func() error {
		if err := c.Get(t.Context(), client.ObjectKeyFromObject(set), set); err != nil {
			return err
		}
		r.SetImage(set, image)
		return c.Update(t.Context(), set)
	}))
}

// without gives the user the role of the operator without one verb on a resource, until the end of the test.
func (r Refused) without(t *testing.T, c client.Client, user, resource, verb string) *rbacv1.ClusterRole {
	t.Helper()
	role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: user}}
	for _, rule := range r.Role.DeepCopy().Rules {
		if i := slices.Index(rule.Resources, resource); i >= 0 {
			less := *rule.DeepCopy()
			less.Resources = []string{resource}
			less.Verbs = slices.DeleteFunc(less.Verbs, func(v string) bool { return v == verb })
			role.Rules = append(role.Rules, less)
			if rule.Resources = slices.Delete(rule.Resources, i, i+1); len(rule.Resources) == 0 {
				continue
			}
		}
		role.Rules = append(role.Rules, rule)
	}
	binding := &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: user},
		RoleRef: rbacv1.RoleRef{
			APIGroup: rbacv1.GroupName,
			Kind:     "ClusterRole",
			Name:     user,
		},
		Subjects: []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: user}},
	}
	for _, o := range []client.Object{role, binding} {
		require.NoError(t, c.Create(t.Context(), o))
		t.Cleanup(func() { assert.NoError(t, c.Delete(context.Background(), o)) })
	}
	r.Env.AwaitRights(t, user, "", role.Rules...)
	return role
}

func (r Refused) pods(t *testing.T, c client.Client, set client.Object) []corev1.Pod {
	t.Helper()
	list := &corev1.PodList{}
	require.NoError(t, c.List(t.Context(), list, client.InNamespace(set.GetNamespace())))
	return list.Items
}

// trials counts the operator's dry runs on pods.
func (r Refused) trials(t *testing.T, audit *testenv.Audit) int {
	t.Helper()
	n := 0
	for _, request := range audit.Requests(t, r.UserAgent) {
		if request.Object.Resource == "pods" && strings.Contains(request.URI, "dryRun=") {
			n++
		}
	}
	return n
}

// assertEventsAreCountedUp requires that there are few warning events, and that some of them count several attempts.
func (r Refused) assertEventsAreCountedUp(t *testing.T, c client.Client, ns string, most int) {
	t.Helper()
	await.Until(t, func(collect *assert.CollectT) {
		list := &eventsv1.EventList{}
		require.NoError(collect, c.List(t.Context(), list, client.InNamespace(ns)))
		warnings, series := 0, 0
		for i := range list.Items {
			if e := &list.Items[i]; e.Type == corev1.EventTypeWarning {
				warnings++
				if e.Series != nil {
					series++
				}
			}
		}
		assert.LessOrEqual(collect, warnings, most)
		assert.Positive(collect, series)
	})
}

// forbid creates a policy that refuses pods with the image in the set's namespace. The function it returns deletes the
// policy.
func (r Refused) forbid(t *testing.T, c client.Client, set client.Object, image string) (allow func()) {
	t.Helper()
	ns := set.GetNamespace()
	policy := &admissionregistrationv1.ValidatingAdmissionPolicy{ObjectMeta: metav1.ObjectMeta{Name: ns}, Spec: admissionregistrationv1.ValidatingAdmissionPolicySpec{
		MatchConstraints: &admissionregistrationv1.MatchResources{
			NamespaceSelector: &metav1.LabelSelector{MatchLabels: map[string]string{corev1.LabelMetadataName: ns}},
			ResourceRules: []admissionregistrationv1.NamedRuleWithOperations{{RuleWithOperations: admissionregistrationv1.RuleWithOperations{
				Operations: []admissionregistrationv1.OperationType{admissionregistrationv1.Create, admissionregistrationv1.Update},
				Rule: admissionregistrationv1.Rule{
					APIGroups:   []string{""},
					APIVersions: []string{"v1"},
					Resources:   []string{"pods"},
				},
			}}},
		},
		Validations: []admissionregistrationv1.Validation{{Expression: fmt.Sprintf("object.spec.containers.all(c, c.image != %q)", image), Message: "not this image"}},
	}}
	binding := &admissionregistrationv1.ValidatingAdmissionPolicyBinding{ObjectMeta: metav1.ObjectMeta{Name: ns}, Spec: admissionregistrationv1.ValidatingAdmissionPolicyBindingSpec{
		PolicyName: ns, ValidationActions: []admissionregistrationv1.ValidationAction{admissionregistrationv1.Deny},
	}}
	require.NoError(t, c.Create(t.Context(), policy))
	require.NoError(t, c.Create(t.Context(), binding))
	pod := r.pods(t, c, set)[0]
	await.Until(t, func(collect *assert.CollectT) {
		tried := pod.DeepCopy()
		tried.Spec.Containers[0].Image = image
		err := c.Patch(t.Context(), tried, client.MergeFrom(&pod), client.DryRunAll)
		assert.Truef(collect, apierrors.IsInvalid(err) || apierrors.IsForbidden(err), "%v", err)
	})
	return func() {
		assert.NoError(t, client.IgnoreNotFound(c.Delete(context.Background(), binding)))
		assert.NoError(t, client.IgnoreNotFound(c.Delete(context.Background(), policy)))
	}
}
