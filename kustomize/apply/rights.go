package apply

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

// Right is a set of verbs that a command needs for objects of a resource, such as "pods" or "pods/status".
type Right struct {
	Resource schema.GroupVersionResource
	// Namespace is where; empty for objects of the cluster, and for all namespaces.
	Namespace string
	Verbs     []string
}

// String names the resource as kubectl does, such as "clonesets.apps.kruise.io/status".
func (r Right) String() string {
	resource, subresource, is := strings.Cut(r.Resource.Resource, "/")
	name := schema.GroupResource{Group: r.Resource.Group, Resource: resource}.String()
	if is {
		name += "/" + subresource
	}
	return name
}

// Check returns an error that names every kind that is not served and every right of these verbs that is missing, the verbs
// for one resource together. A user who patches roles must have the permissions that the roles grant: a dry run asks the
// server.
func (c *Cluster) Check(ctx context.Context, objects []*unstructured.Unstructured, verbs ...string) error {
	var faults []error
	var rights []Right
	asked := map[string]bool{}
	for _, object := range objects {
		_, mapping, err := c.resource(object)
		if meta.IsNoMatchError(err) {
			if kind := object.GroupVersionKind().GroupKind().String(); !asked[kind] {
				asked[kind] = true
				faults = append(faults, fmt.Errorf("the cluster does not serve kind %s: install its CRD, or omit the component", kind))
			}
			continue
		}
		if err != nil {
			return err
		}
		rights = append(rights, Right{
			Resource:  mapping.Resource,
			Namespace: object.GetNamespace(),
			Verbs:     verbs,
		})
	}
	faults = append(faults, c.Has(ctx, rights...))
	if err := errors.Join(faults...); err != nil || !slices.Contains(verbs, "patch") {
		return err
	}
	return c.mayGrant(ctx, objects)
}

// Has returns an error that names every right that is missing.
func (c *Cluster) Has(ctx context.Context, rights ...Right) error {
	var faults []error
	asked := map[string]bool{}
	for _, right := range rights {
		key := fmt.Sprint(right, right.Namespace, right.Verbs)
		if asked[key] {
			continue
		}
		asked[key] = true
		var missing []string
		for _, verb := range right.Verbs {
			allowed, err := c.may(ctx, verb, right)
			if err != nil {
				return err
			}
			if !allowed {
				missing = append(missing, verb)
			}
		}
		if len(missing) > 0 {
			where := ""
			if right.Namespace != "" {
				where = " in namespace " + right.Namespace
			}
			faults = append(faults, fmt.Errorf("missing permission: %s %s%s", strings.Join(missing, ", "), right, where))
		}
	}
	return errors.Join(faults...)
}

// Grants reports whether a ServiceAccount, which need not exist yet, has all verbs of the right, as far as the user may ask.
func (c *Cluster) Grants(ctx context.Context, account types.NamespacedName, right Right) (bool, error) {
	const groups = "system:serviceaccounts"
	for _, verb := range right.Verbs {
		allowed, err := c.review(ctx, "SubjectAccessReview", "subjectaccessreviews", verb, right, map[string]any{
			"user":   "system:serviceaccount:" + account.Namespace + ":" + account.Name,
			"groups": []any{groups, groups + ":" + account.Namespace, "system:authenticated"},
		})
		if apierrors.IsForbidden(err) {
			return false, nil
		}
		if err != nil || !allowed {
			return false, err
		}
	}
	return true, nil
}

func (c *Cluster) may(ctx context.Context, verb string, right Right) (bool, error) {
	return c.review(ctx, "SelfSubjectAccessReview", "selfsubjectaccessreviews", verb, right, map[string]any{})
}

// review asks for one verb of a right. The spec names the user.
func (c *Cluster) review(ctx context.Context, kind, resources, verb string, right Right, spec map[string]any) (bool, error) {
	resource, subresource, _ := strings.Cut(right.Resource.Resource, "/")
	spec["resourceAttributes"] = map[string]any{
		"verb":        verb,
		"group":       right.Resource.Group,
		"resource":    resource,
		"subresource": subresource,
		"namespace":   right.Namespace,
	}
	review := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "authorization.k8s.io/v1",
		"kind":       kind,
		"spec":       spec,
	}}
	reviews := schema.GroupVersionResource{Group: "authorization.k8s.io", Version: "v1", Resource: resources}
	answer, err := c.objects.Resource(reviews).Create(ctx, review, metav1.CreateOptions{})
	if err != nil {
		return false, fmt.Errorf("check the permission to %s %s: %w", verb, right, err)
	}
	allowed, _, _ := unstructured.NestedBool(answer.Object, "status", "allowed")
	return allowed, nil
}

// mayGrant returns an error for each role among the objects that grants permissions which the user may not grant. In a
// namespace that does not exist yet, and for a binding of such a role, the server cannot check this.
func (c *Cluster) mayGrant(ctx context.Context, objects []*unstructured.Unstructured) error {
	var faults []error
	for _, object := range objects {
		if object.GroupVersionKind().Group != "rbac.authorization.k8s.io" {
			continue
		}
		_, err := c.Apply(ctx, object, Options{Force: true, DryRun: true})
		switch {
		case apierrors.IsForbidden(err):
			faults = append(faults, fmt.Errorf("missing permission: to grant the permissions of %s: %w", Describe(object), err))
		case err != nil && !apierrors.IsNotFound(err):
			return err
		}
	}
	return errors.Join(faults...)
}
