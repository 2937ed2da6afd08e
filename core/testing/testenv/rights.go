package testenv

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	authorizationv1 "k8s.io/api/authorization/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/flotilla-project/flotilla/core/testing/await"
)

// AwaitRights waits until the API server grants the user what the rules say. A namespace limits them, as a Role does. The
// server knows roles by watches of its own: right after a role is bound, it still refuses what the role grants.
func (e *Environment) AwaitRights(t testing.TB, user, namespace string, rules ...rbacv1.PolicyRule) {
	t.Helper()
	e.awaitReviews(t, true, user, namespace, rules)
}

// AwaitLoss waits until the API server refuses the user all that the rules say, after their role was deleted or unbound.
func (e *Environment) AwaitLoss(t testing.TB, user, namespace string, rules ...rbacv1.PolicyRule) {
	t.Helper()
	e.awaitReviews(t, false, user, namespace, rules)
}

func (e *Environment) awaitReviews(t testing.TB, granted bool, user, namespace string, rules []rbacv1.PolicyRule) {
	t.Helper()
	c, err := client.New(e.ConfigAs(t, "test"), client.Options{Scheme: e.Scheme})
	require.NoError(t, err)
	var left []authorizationv1.SubjectAccessReviewSpec
	for _, rule := range rules {
		left = append(left, reviewsOf(rule, user, namespace)...)
	}
	await.Until(t, func(check *assert.CollectT) {
		for len(left) > 0 {
			review := &authorizationv1.SubjectAccessReview{Spec: left[0]}
			require.NoError(check, c.Create(t.Context(), review))
			require.Equal(check, granted, review.Status.Allowed, "%s: %s", &review.Spec, review.Status.Reason)
			left = left[1:]
		}
	})
}

// reviewsOf returns a question for each thing that the rule grants the user.
func reviewsOf(rule rbacv1.PolicyRule, user, namespace string) (all []authorizationv1.SubjectAccessReviewSpec) {
	names := rule.ResourceNames
	if len(names) == 0 {
		names = []string{""}
	}
	for _, verb := range rule.Verbs {
		for _, path := range rule.NonResourceURLs {
			all = append(all, authorizationv1.SubjectAccessReviewSpec{
				User: user, NonResourceAttributes: &authorizationv1.NonResourceAttributes{Verb: verb, Path: path},
			})
		}
		for _, group := range rule.APIGroups {
			for _, resource := range rule.Resources {
				resource, subresource, _ := strings.Cut(resource, "/")
				for _, name := range names {
					all = append(all, authorizationv1.SubjectAccessReviewSpec{
						User: user, ResourceAttributes: &authorizationv1.ResourceAttributes{
							Namespace:   namespace,
							Verb:        verb,
							Group:       group,
							Resource:    resource,
							Subresource: subresource,
							Name:        name,
						},
					})
				}
			}
		}
	}
	return all
}

// awaitBindings waits until the bindings among the objects give users and service accounts what their roles grant.
func (e *Environment) awaitBindings(t testing.TB, objects []*unstructured.Unstructured) {
	t.Helper()
	c := e.Client(t)
	for _, object := range objects {
		if object.GetKind() != "RoleBinding" && object.GetKind() != "ClusterRoleBinding" {
			continue
		}
		var binding rbacv1.RoleBinding // has the fields of the other kind
		require.NoError(t, runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, &binding))
		role := &unstructured.Unstructured{}
		role.SetAPIVersion(rbacv1.SchemeGroupVersion.String())
		role.SetKind(binding.RoleRef.Kind)
		key := client.ObjectKey{Name: binding.RoleRef.Name}
		if binding.RoleRef.Kind == "Role" {
			key.Namespace = binding.Namespace
		}
		require.NoError(t, c.Get(t.Context(), key, role))
		var rules rbacv1.ClusterRole // has the fields of the other kind
		require.NoError(t, runtime.DefaultUnstructuredConverter.FromUnstructured(role.Object, &rules))
		for _, subject := range binding.Subjects {
			user := subject.Name
			switch subject.Kind {
			case rbacv1.GroupKind:
				continue
			case rbacv1.ServiceAccountKind:
				user = "system:serviceaccount:" + subject.Namespace + ":" + subject.Name
			}
			e.AwaitRights(t, user, binding.Namespace, rules.Rules...)
		}
	}
}
