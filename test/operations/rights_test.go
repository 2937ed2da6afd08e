package operations

import (
	"context"
	"errors"
	"flag"
	"io"
	"net/http"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	authorizationv1 "k8s.io/api/authorization/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	testinstall "github.com/flotilla-project/flotilla/test/install"
	"github.com/flotilla-project/flotilla/test/managers"
	"github.com/flotilla-project/flotilla/test/story"
)

// oneByOne is for a change of what is optional: all at once may hide that one of them is not.
var oneByOne = flag.Bool("one-by-one", false, "take each permission away by itself, too, which takes half an hour")

// needed are the resources without which an operator cannot do what its story tells, its own kind first. It can do without
// all others that its roles name, those of new rules included.
func needed() map[string][]string {
	set := func(kind string, more ...string) []string {
		return append([]string{kind + ".apps.kruise.io", kind + "/status.apps.kruise.io", "pods", "pods/status", "controllerrevisions.apps", "podtemplates"}, more...)
	}
	targets := []string{"pods", "namespaces", "deployments.apps", "deployments/scale.apps", "replicasets.apps", "replicasets/scale.apps"}
	return map[string][]string{
		"cloneset":    set("clonesets", "persistentvolumeclaims"),
		"statefulset": set("statefulsets", "persistentvolumeclaims"),
		"daemonset":   set("daemonsets", "nodes"),
		"jobs":        {"broadcastjobs.apps.kruise.io", "broadcastjobs/status.apps.kruise.io", "pods", "podtemplates", "nodes"},
		"daemon":      {"nodeimages.apps.kruise.io", "nodeimages/status.apps.kruise.io", "nodes"},
		"spread":      append([]string{"workloadspreads.apps.kruise.io", "workloadspreads/status.apps.kruise.io", "podtemplates", "nodes"}, targets...),
		"budget":      append([]string{"podunavailablebudgets.policy.kruise.io", "podunavailablebudgets/status.policy.kruise.io", "nodes"}, targets...),
	}
}

// grantedByOthers are the resources for which another feature grants a permission, by the feature that uses it. A feature
// that is alone always lacks them.
func grantedByOthers() map[string][]string {
	return map[string][]string{"jobs": {"secrets"}} // copies of pull secrets, in the namespace of feature daemon
}

// An operator that lacks all permissions that it can do without, taken away while it runs or before it starts, does what
// its story tells all the same. One that lacks all that it needs runs, and its metrics say what it lacks.
func TestALostPermissionStopsNothingElse(t *testing.T) {
	need(t)
	for _, feature := range all(t) {
		require.NoError(t, managers.Define(t.Context(), world.Client, feature)) // what is not served is not asked for
	}
	for _, feature := range all(t) {
		var spare []string
		t.Run(feature, func(t *testing.T) {
			f, mine := install(t, "", feature), needed()[feature]
			a := accountOf(t, feature)
			spare = f.worksWithout(t, a, feature, func(resource string) bool { return !slices.Contains(mine, resource) })

			f.stop(t, feature)
			lost := a.lose(t, func(resource string) bool { return slices.Contains(mine, resource) })
			assert.ElementsMatch(t, mine, lost, "roles name what is needed")
			f.start(t, feature)
			story.Eventually(t, "what is told of its own kind", func(context.Context) error {
				told := lacks(t, f[feature])
				return story.Want(slices.Contains(told, mine[0]), "the metrics tell of %v", told)
			})
			f.stop(t, feature)
			require.NoError(t, os.Truncate(f[feature].Log, 0)) // it was made to fail
		})
		for _, resource := range spare {
			if *oneByOne {
				t.Run(feature+" without "+resource, func(t *testing.T) {
					f := install(t, "", feature)
					f.worksWithout(t, accountOf(t, feature), feature, func(lost string) bool { return lost == resource })
					if resource == "events.events.k8s.io" {
						f.stop(t, feature)
						require.NoError(t, os.Truncate(f[feature].Log, 0)) // client-go logs each event that is refused
					}
				})
			}
		}
	}
}

// worksWithout takes the chosen permissions away, tells the story of the feature before and after a start of the operator, and
// returns the permissions.
func (f fleet) worksWithout(t *testing.T, a *account, feature string, chosen func(resource string) bool) (lost []string) {
	t.Helper()
	works(t, f[feature])
	lost = a.lose(t, chosen)
	require.NotEmpty(t, lost)
	t.Run("while it runs", storyOf(t, feature))
	f.stop(t, feature)
	f.start(t, feature)
	t.Run("before it starts", storyOf(t, feature))
	told := lacks(t, f[feature])
	assert.Subset(t, append(slices.Clone(lost), grantedByOthers()[feature]...), told, "what the metrics name was taken away")
	t.Logf("%s without %v: its metrics name %v", feature, lost, told)
	return lost
}

// works waits until the caches of the operator are filled. Until then it takes a permission for granted that it had when it
// began to lead, and ends if it cannot fill a cache.
func works(t *testing.T, m *managers.Manager) {
	t.Helper()
	story.Eventually(t, "the controllers of "+m.Feature, func(context.Context) error {
		working, err := m.Working()
		return errors.Join(err, story.Want(working, "a cache is not filled yet"))
	})
}

// account is the ServiceAccount of an operator with the roles that are bound to it, whichever feature brings them, but for
// the one by which it elects a leader and keeps its certificates.
type account struct {
	name  string
	roles []client.Object
}

func accountOf(t *testing.T, feature string) *account {
	t.Helper()
	a := &account{name: feature + "-manager"}
	bound := func(subjects []rbacv1.Subject) bool {
		return slices.ContainsFunc(subjects, func(s rbacv1.Subject) bool { return s.Name == a.name && s.Namespace == testinstall.Namespace })
	}
	add := func(role client.Object, namespace, name string) {
		require.NoError(t, world.Client.Get(t.Context(), client.ObjectKey{Namespace: namespace, Name: name}, role))
		a.roles = append(a.roles, role)
	}
	var everywhere rbacv1.ClusterRoleBindingList
	var within rbacv1.RoleBindingList
	require.NoError(t, world.Client.List(t.Context(), &everywhere))
	require.NoError(t, world.Client.List(t.Context(), &within))
	for _, binding := range everywhere.Items {
		if bound(binding.Subjects) {
			add(&rbacv1.ClusterRole{}, "", binding.RoleRef.Name)
		}
	}
	for _, binding := range within.Items {
		if bound(binding.Subjects) && binding.Name != a.name {
			add(&rbacv1.Role{}, binding.Namespace, binding.RoleRef.Name)
		}
	}
	require.NotEmpty(t, a.roles)
	return a
}

// holdCA are the resources by which the API server trusts an operator. Without them no request reaches it.
var holdCA = []string{
	"mutatingwebhookconfigurations.admissionregistration.k8s.io", "validatingwebhookconfigurations.admissionregistration.k8s.io",
	"customresourcedefinitions.apiextensions.k8s.io",
}

// lose takes the chosen resources out of the roles, until the end of the test, and returns them once the server knows. Those
// that hold the CA stay.
func (a *account) lose(t *testing.T, chosen func(resource string) bool) (lost []string) {
	t.Helper()
	var waits []func()
	for _, role := range a.roles {
		before := role.DeepCopyObject().(client.Object)
		var left []rbacv1.PolicyRule
		for _, rule := range single(*rulesOf(role)) {
			if resource := nameOf(rule); !slices.Contains(holdCA, resource) && chosen(resource) {
				lost = append(lost, resource)
				waits = append(waits, func() { a.awaitLoss(t, role.GetNamespace(), rule) })
			} else {
				left = append(left, rule)
			}
		}
		*rulesOf(role) = left
		require.NoError(t, world.Client.Update(t.Context(), role))
		t.Cleanup(func() {
			before.SetResourceVersion("")
			require.NoError(t, world.Client.Update(context.WithoutCancel(t.Context()), before))
		})
	}
	for _, wait := range waits {
		wait()
	}
	slices.Sort(lost)
	return slices.Compact(lost)
}

// awaitLoss waits until the server refuses what the rule has granted.
func (a *account) awaitLoss(t *testing.T, namespace string, rule rbacv1.PolicyRule) {
	t.Helper()
	story.Eventually(t, "the loss of "+nameOf(rule), func(ctx context.Context) error {
		review := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
			User: "system:serviceaccount:" + testinstall.Namespace + ":" + a.name,
			ResourceAttributes: &authorizationv1.ResourceAttributes{
				Namespace: namespace, Verb: rule.Verbs[0], Group: rule.APIGroups[0], Resource: rule.Resources[0],
				Name: strings.Join(rule.ResourceNames, ""), // all rules of ours name one object, or none
			},
		}}
		err := world.Client.Create(ctx, review)
		if err != nil {
			return err
		}
		return story.Want(!review.Status.Allowed, "it is granted: %s", review.Status.Reason)
	})
}

// rulesOf returns the rules of a role of either kind.
func rulesOf(role client.Object) *[]rbacv1.PolicyRule {
	if everywhere, ok := role.(*rbacv1.ClusterRole); ok {
		return &everywhere.Rules
	}
	return &role.(*rbacv1.Role).Rules
}

// single returns the rules as rules of one resource each.
func single(rules []rbacv1.PolicyRule) (all []rbacv1.PolicyRule) {
	for _, rule := range rules {
		for _, group := range rule.APIGroups {
			for _, resource := range rule.Resources {
				one := *rule.DeepCopy()
				one.APIGroups, one.Resources = []string{group}, []string{resource}
				all = append(all, one)
			}
		}
	}
	return all
}

// nameOf returns the resource of a rule with its group.
func nameOf(rule rbacv1.PolicyRule) string {
	return schema.GroupResource{Group: rule.APIGroups[0], Resource: rule.Resources[0]}.String()
}

// forbidden is a sample of the metric of what an operator lacks permissions for.
var forbidden = regexp.MustCompile(`(?m)^flotilla_forbidden_requests_total\{group="([^"]*)",resource="([^"]+)",verb="\w+"\}`)

// lacks returns the resources that the manager has no permission for, as its metrics say.
func lacks(t *testing.T, m *managers.Manager) (resources []string) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, m.Metrics, nil)
	require.NoError(t, err)
	response, err := http.DefaultClient.Do(request)
	require.NoError(t, err)
	defer response.Body.Close()
	page, err := io.ReadAll(response.Body)
	require.NoError(t, err)
	require.Equal(t, http.StatusOK, response.StatusCode, "%.200s", page)
	for _, sample := range forbidden.FindAllStringSubmatch(string(page), -1) {
		resources = append(resources, schema.GroupResource{Group: sample[1], Resource: sample[2]}.String())
	}
	slices.Sort(resources)
	return slices.Compact(resources)
}
