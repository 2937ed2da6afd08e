package apply

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/pager"
	"k8s.io/utils/clock"
)

// Migration makes the objects of a CRD be stored in a version.
type Migration struct {
	Cluster *Cluster
	// CRD is the live one. New writes are stored in the version already.
	CRD *unstructured.Unstructured
	// Settle is how long API servers may take to notice that, and how long a controller may take to begin a
	// StorageVersionMigration.
	Settle time.Duration
	// Timeout is how long to wait for API servers, for a StorageVersionMigration, and for each object.
	Timeout time.Duration
	Tell    func(string)
	Clock   clock.Clock
}

// Run writes all objects, and then writes down that they are stored in one version. It can be done again.
func (m Migration) Run(ctx context.Context) (result string, err error) {
	if err := m.noticed(ctx); err != nil {
		return "", err
	}
	result, err = m.byController(ctx)
	if err == nil && result == "" {
		result, err = m.byPatches(ctx)
	}
	if err != nil {
		return "", err
	}
	patch := map[string]any{"status": map[string]any{"storedVersions": []string{StorageVersion(m.CRD)}}}
	return result, m.Cluster.PatchStatus(ctx, m.CRD, patch)
}

// Rights are the permissions that the migration needs.
func (m Migration) Rights() ([]Right, error) {
	objects, written := m.resource(), m.resource()
	written.Resource = strings.Join(append([]string{written.Resource}, m.status()...), "/")
	definitions := schema.GroupVersionResource{
		Group:    "apiextensions.k8s.io",
		Version:  "v1",
		Resource: "customresourcedefinitions",
	}
	status := definitions
	status.Resource += "/status"
	rights := []Right{
		{Resource: definitions, Verbs: []string{"update"}}, {Resource: status, Verbs: []string{"patch"}},
		{Resource: objects, Verbs: []string{"list"}}, {Resource: written, Verbs: []string{"patch"}},
	}
	mapping, err := m.Cluster.mapper.RESTMapping(migrations)
	if meta.IsNoMatchError(err) {
		return rights, nil
	}
	if err != nil {
		return nil, fmt.Errorf("look up %s: %w", migrations, err)
	}
	return append(rights, Right{Resource: mapping.Resource, Verbs: []string{"get", "create", "patch", "delete"}}), nil
}

// resource returns the resource in the version that is stored.
func (m Migration) resource() schema.GroupVersionResource {
	group, _, _ := unstructured.NestedString(m.CRD.Object, "spec", "group")
	plural, _, _ := unstructured.NestedString(m.CRD.Object, "spec", "names", "plural")
	return schema.GroupVersionResource{
		Group:    group,
		Version:  StorageVersion(m.CRD),
		Resource: plural,
	}
}

// noticed waits until the API server stores objects in the version, as a digest in its discovery shows. Then it waits for
// the other API servers.
func (m Migration) noticed(ctx context.Context) error {
	resource := m.resource()
	kind, _, _ := unstructured.NestedString(m.CRD.Object, "spec", "names", "kind")
	sum := sha256.Sum256([]byte(resource.Group + "/" + resource.Version + "/" + kind))
	want := base64.StdEncoding.EncodeToString(sum[:8])
	err := Await(ctx, m.Timeout, m.Tell, func(context.Context) (bool, string, error) {
		list, err := m.Cluster.fresh.ServerResourcesForGroupVersion(resource.GroupVersion().String())
		if err != nil {
			return false, err.Error(), nil //nolint:nilerr // what it waits for
		}
		at := slices.IndexFunc(list.APIResources, func(r metav1.APIResource) bool { return r.Name == resource.Resource })
		stored := at >= 0 && (list.APIResources[at].StorageVersionHash == want || list.APIResources[at].StorageVersionHash == "")
		return stored, "the API server does not store " + resource.GroupResource().String() + " as " + resource.Version + " yet", nil
	})
	if err != nil || m.Settle <= 0 {
		return err
	}
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-m.Clock.After(m.Settle):
		return nil
	}
}

// migrations is the kind by which a controller of Kubernetes migrates, in clusters that serve it.
var migrations = schema.GroupKind{Group: "storagemigration.k8s.io", Kind: "StorageVersionMigration"} //nolint:gochecknoglobals // a constant

// byController lets a StorageVersionMigration do it. The result is empty if the kind is not served, or if no controller begins
// the migration or ends it: a cluster may serve the kind and run no controller for it.
func (m Migration) byController(ctx context.Context) (result string, err error) {
	mapping, err := m.Cluster.mapper.RESTMapping(migrations)
	if meta.IsNoMatchError(err) {
		return "", nil
	}
	if err != nil {
		return "", fmt.Errorf("look up %s: %w", migrations, err)
	}
	resource := m.resource()
	which := map[string]any{"group": resource.Group, "resource": resource.Resource}
	if mapping.GroupVersionKind.Version == "v1alpha1" {
		which["version"] = resource.Version
	}
	migration := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"resource": which}}}
	migration.SetGroupVersionKind(mapping.GroupVersionKind)
	migration.SetName("flotilla-" + m.CRD.GetName() + "-" + resource.Version)
	if _, err := m.Cluster.Delete(ctx, migration); err != nil { // of a run that was cut off
		return "", err
	}
	if err := Await(ctx, m.Timeout, m.Tell, func(ctx context.Context) (bool, string, error) {
		live, err := m.Cluster.Get(ctx, migration)
		return live == nil, Describe(migration) + " is not gone yet", err
	}); err != nil {
		return "", err
	}
	if _, err := m.Cluster.Apply(ctx, migration, Options{}); err != nil {
		return "", err
	}
	ended := m.ended(ctx, migration)
	if _, err := m.Cluster.Delete(context.WithoutCancel(ctx), migration); err != nil {
		return "", err
	}
	if ctx.Err() != nil {
		return "", ctx.Err()
	}
	if ended != nil {
		m.Tell("every object is written again, because " + Describe(migration) + " did not succeed")
		return "", nil //nolint:nilerr // every object is written again instead
	}
	return "migrated by " + Describe(migration), nil
}

// ended waits until a controller has ended a migration. The error says that it failed, or that no controller works on it.
func (m Migration) ended(ctx context.Context, migration *unstructured.Unstructured) error {
	var live *unstructured.Unstructured
	if err := Await(ctx, m.Settle, m.Tell, func(ctx context.Context) (_ bool, _ string, err error) {
		live, err = m.Cluster.Get(ctx, migration)
		return err == nil && (live == nil || hasConditions(live)), "no controller has begun " + Describe(migration), err
	}); err != nil {
		return err
	}
	failed := ""
	err := Await(ctx, m.Timeout, m.Tell, func(ctx context.Context) (_ bool, _ string, err error) {
		if live, err = m.Cluster.Get(ctx, migration); err != nil || live == nil {
			return err == nil, "", err
		}
		succeeded, _ := condition(live, "Succeeded")
		yes, message := condition(live, "Failed")
		if yes {
			failed = message
		}
		return succeeded || yes, Describe(migration) + " is not done yet", nil
	})
	if err == nil && failed != "" {
		err = errors.New(failed)
	}
	return err
}

func hasConditions(object *unstructured.Unstructured) bool {
	conditions, _, _ := unstructured.NestedSlice(object.Object, "status", "conditions")
	return len(conditions) > 0
}

// condition returns whether an object has a condition with status True, and its message.
func condition(object *unstructured.Unstructured, kind string) (yes bool, message string) {
	conditions, _, _ := unstructured.NestedSlice(object.Object, "status", "conditions")
	for _, one := range conditions {
		fields, _ := one.(map[string]any)
		if fields["type"] == kind && fields["status"] == "True" {
			message, _ = fields["message"].(string)
			return true, message
		}
	}
	return false, ""
}

// byPatches sends an empty patch of each object, which the API server writes because it stores another version. A patch of the
// status asks no webhook of the operator, so that an object which these refuse today is migrated too.
func (m Migration) byPatches(ctx context.Context) (result string, err error) {
	resource := m.resource()
	names, err := m.Cluster.names(ctx, resource)
	if err != nil {
		return "", err
	}
	var refused []error
	for i, name := range names {
		m.Tell(fmt.Sprintf("%d of %d objects", i, len(names)))
		var last error
		err := Await(ctx, m.Timeout, func(string) {}, func(ctx context.Context) (done bool, waitsFor string, err error) {
			defer func() { last = err }()
			_, err = m.Cluster.objects.Resource(resource).Namespace(name.Namespace).
				Patch(ctx, name.Name, types.MergePatchType, []byte("{}"), metav1.PatchOptions{FieldManager: Manager}, m.status()...)
			if apierrors.IsNotFound(err) {
				err = nil
			}
			return err == nil, "", err
		})
		if ctx.Err() != nil {
			return "", ctx.Err()
		}
		if err != nil && OfAMoment(last) && apierrors.ReasonForError(last) == metav1.StatusReasonUnknown {
			// The server does not answer. Each of the others would wait as long.
			return "", fmt.Errorf("store %s as %s, after %d of %d objects: %w", strings.TrimPrefix(name.String(), "/"), resource.Version, i, len(names), err)
		}
		if err != nil {
			refused = append(refused, fmt.Errorf("%s: %w", strings.TrimPrefix(name.String(), "/"), err))
		}
	}
	if len(refused) > 0 {
		const told = 10
		return "", fmt.Errorf("%d of %d objects of %s could not be stored as %s: %w", len(refused), len(names), resource.GroupResource(),
			resource.Version, errors.Join(refused[:min(told, len(refused))]...))
	}
	return Count(len(names), "object", "objects") + " migrated", nil
}

// status is the subresource that is patched, if the version has it.
func (m Migration) status() []string {
	for _, version := range versionsOf(m.CRD) {
		if _, has, _ := unstructured.NestedMap(version, "subresources", "status"); has && version["storage"] == true {
			return []string{"status"}
		}
	}
	return nil
}

// names returns the names of all objects of a resource, which are read in pages.
func (c *Cluster) names(ctx context.Context, resource schema.GroupVersionResource) ([]types.NamespacedName, error) {
	var names []types.NamespacedName
	pages := pager.New(func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
		return c.objects.Resource(resource).List(ctx, o)
	})
	err := pages.EachListItem(ctx, metav1.ListOptions{}, func(item runtime.Object) error {
		object, err := meta.Accessor(item)
		if err == nil {
			names = append(names, types.NamespacedName{Namespace: object.GetNamespace(), Name: object.GetName()})
		}
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("list %s: %w", resource.GroupResource(), err)
	}
	return names, nil
}

// PatchStatus merges fields into the status of an object.
func (c *Cluster) PatchStatus(ctx context.Context, object *unstructured.Unstructured, fields map[string]any) error {
	resource, _, err := c.resource(object)
	if err != nil {
		return err
	}
	text, err := json.Marshal(fields)
	if err != nil {
		return fmt.Errorf("write the status of %s: %w", Describe(object), err)
	}
	if _, err := resource.Patch(ctx, object.GetName(), types.MergePatchType, text, metav1.PatchOptions{FieldManager: Manager}, "status"); err != nil {
		return fmt.Errorf("write the status of %s: %w", Describe(object), err)
	}
	return nil
}
