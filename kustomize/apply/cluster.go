package apply

import (
	"context"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/version"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
)

const (
	// Manager owns the fields that are applied.
	Manager = "flotilla"
	// Oldest is the first version of Kubernetes that operators run on.
	Oldest = "1.33"
)

// Cluster reads and writes objects of any kind.
type Cluster struct {
	objects   dynamic.Interface
	mapper    meta.RESTMapper
	discovery discovery.DiscoveryInterface
	// fresh is a discovery that remembers nothing.
	fresh discovery.DiscoveryInterface
}

// Connect returns the cluster that the flags name. It sends no request.
func Connect(flags genericclioptions.RESTClientGetter) (*Cluster, error) {
	return ConnectAs(flags, "")
}

// ConnectAs returns the cluster as another user sees it, who is impersonated. An empty name means the user that the flags
// name.
func ConnectAs(flags genericclioptions.RESTClientGetter, user string) (*Cluster, error) {
	config, err := flags.ToRESTConfig()
	if err != nil {
		return nil, fmt.Errorf("read the kubeconfig: %w", err)
	}
	config = Repeating(config)
	if user != "" {
		config.Impersonate = rest.ImpersonationConfig{UserName: user}
	}
	config.QPS = -1 // the server limits
	config.UserAgent = Manager
	objects, err := dynamic.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("connect to the cluster: %w", err)
	}
	fresh, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("connect to the cluster: %w", err)
	}
	found, err := flags.ToDiscoveryClient()
	if err != nil {
		return nil, fmt.Errorf("connect to the cluster: %w", err)
	}
	mapper, err := flags.ToRESTMapper()
	if err != nil {
		return nil, fmt.Errorf("connect to the cluster: %w", err)
	}
	return &Cluster{
		objects:   objects,
		mapper:    mapper,
		discovery: found,
		fresh:     fresh,
	}, nil
}

// Reach returns an error if the cluster does not answer.
func (c *Cluster) Reach() error {
	if _, err := c.discovery.ServerVersion(); err != nil {
		return fmt.Errorf("read the version of the cluster: %w", err)
	}
	return nil
}

// Version returns the version of the API server, and an error if operators do not run on it.
func (c *Cluster) Version() (string, error) {
	info, err := c.discovery.ServerVersion()
	if err != nil {
		return "", fmt.Errorf("read the version of the cluster: %w", err)
	}
	found, err := version.ParseGeneric(info.GitVersion)
	if err != nil {
		return info.GitVersion, nil //nolint:nilerr // what cannot be read is not held against the cluster
	}
	if found.LessThan(version.MustParseGeneric(Oldest)) {
		return info.GitVersion, fmt.Errorf("the cluster has Kubernetes %s; the operators need %s or newer", info.GitVersion, Oldest)
	}
	return info.GitVersion, nil
}

// resource returns where objects of the kind are written.
func (c *Cluster) resource(object *unstructured.Unstructured) (dynamic.ResourceInterface, *meta.RESTMapping, error) {
	kind := object.GroupVersionKind()
	mapping, err := c.mapper.RESTMapping(kind.GroupKind(), kind.Version)
	if err != nil {
		return nil, nil, fmt.Errorf("look up %s: %w", Describe(object), err)
	}
	resource := c.objects.Resource(mapping.Resource)
	if mapping.Scope.Name() == meta.RESTScopeNameNamespace {
		return resource.Namespace(object.GetNamespace()), mapping, nil
	}
	return resource, mapping, nil
}

// Served returns the resource of a kind, empty if the cluster does not serve it, and whether that has a scale subresource.
func (c *Cluster) Served(kind schema.GroupKind) (resource schema.GroupResource, scales bool, err error) {
	mapping, err := c.mapper.RESTMapping(kind)
	if meta.IsNoMatchError(err) {
		return schema.GroupResource{}, false, nil
	}
	if err != nil {
		return schema.GroupResource{}, false, fmt.Errorf("look up kind %s: %w", kind, err)
	}
	served, err := c.discovery.ServerResourcesForGroupVersion(mapping.Resource.GroupVersion().String())
	if err != nil {
		return schema.GroupResource{}, false, fmt.Errorf("look up the subresources of kind %s: %w", kind, err)
	}
	scales = slices.ContainsFunc(served.APIResources, func(r metav1.APIResource) bool { return r.Name == mapping.Resource.Resource+"/scale" })
	return mapping.Resource.GroupResource(), scales, nil
}

// Options are how objects are written.
type Options struct {
	// Force takes fields over that others set.
	Force bool
	// DryRun writes nothing. The server returns the object that it would have written.
	DryRun bool
}

// Apply writes the fields that an object has, and returns the stored object. Labels that name the manager of the object are
// taken over from other field managers.
func (c *Cluster) Apply(ctx context.Context, object *unstructured.Unstructured, o Options) (*unstructured.Unstructured, error) {
	resource, _, err := c.resource(object)
	if err != nil {
		return nil, err
	}
	options := metav1.ApplyOptions{FieldManager: Manager, Force: o.Force}
	if o.DryRun {
		options.DryRun = []string{metav1.DryRunAll}
	}
	stored, err := resource.Apply(ctx, object.GetName(), object, options)
	if signedByOther(err) {
		if options.Force = o.DryRun; !o.DryRun { // the signature of a dry run is not kept
			err = sign(ctx, resource, object)
		}
		if o.DryRun || err == nil {
			stored, err = resource.Apply(ctx, object.GetName(), object, options)
		}
	}
	switch {
	case apierrors.IsConflict(err):
		return nil, fmt.Errorf("apply %s: another tool owns some of its fields; to overwrite them, add --force-conflicts: %w", Describe(object), err)
	case err != nil:
		return nil, fmt.Errorf("apply %s: %w", Describe(object), err)
	}
	return stored, nil
}

// Get returns the object as it is stored, nil if it is not, or its kind is not served.
func (c *Cluster) Get(ctx context.Context, object *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	resource, _, err := c.resource(object)
	if meta.IsNoMatchError(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	stored, err := resource.Get(ctx, object.GetName(), metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("get %s: %w", Describe(object), err)
	}
	return stored, nil
}

// Update replaces an object that was read before. It returns an error if another client has written the object since then.
func (c *Cluster) Update(ctx context.Context, object *unstructured.Unstructured) error {
	resource, _, err := c.resource(object)
	if err != nil {
		return err
	}
	if _, err := resource.Update(ctx, object, metav1.UpdateOptions{FieldManager: Manager}); err != nil {
		return fmt.Errorf("update %s: %w", Describe(object), err)
	}
	return nil
}

// Delete deletes the object; all that it owns is deleted afterwards. It reports whether there was one.
func (c *Cluster) Delete(ctx context.Context, object *unstructured.Unstructured) (bool, error) {
	return c.delete(ctx, object, metav1.DeletePropagationBackground)
}

// DeleteAfterDependents marks the object for deletion: it is gone when the pods and other objects that it controls are. It
// reports whether there was one.
func (c *Cluster) DeleteAfterDependents(ctx context.Context, object *unstructured.Unstructured) (bool, error) {
	return c.delete(ctx, object, metav1.DeletePropagationForeground)
}

func (c *Cluster) delete(ctx context.Context, object *unstructured.Unstructured, policy metav1.DeletionPropagation) (bool, error) {
	resource, _, err := c.resource(object)
	if meta.IsNoMatchError(err) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	err = resource.Delete(ctx, object.GetName(), metav1.DeleteOptions{PropagationPolicy: &policy})
	if apierrors.IsNotFound(err) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("delete %s: %w", Describe(object), err)
	}
	return true, nil
}

// List returns the objects of a resource in a namespace, or in all if it is empty, that a label selector names. A
// resource that is not served has none.
func (c *Cluster) List(ctx context.Context, resource schema.GroupVersionResource, namespace, selector string) ([]unstructured.Unstructured, error) {
	return c.list(ctx, resource, namespace, metav1.ListOptions{LabelSelector: selector})
}

// ListPods returns the pods of all namespaces in a phase.
func (c *Cluster) ListPods(ctx context.Context, phase string) ([]unstructured.Unstructured, error) {
	return c.list(ctx, schema.GroupVersionResource{Version: "v1", Resource: "pods"}, "", metav1.ListOptions{FieldSelector: "status.phase=" + phase})
}

func (c *Cluster) list(ctx context.Context, resource schema.GroupVersionResource, namespace string, o metav1.ListOptions) ([]unstructured.Unstructured, error) {
	list, err := c.objects.Resource(resource).Namespace(namespace).List(ctx, o)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("list %s: %w", resource.GroupResource(), err)
	}
	return list.Items, nil
}

// TryCreate asks the server whether it would create the object, through all webhooks. It creates nothing.
func (c *Cluster) TryCreate(ctx context.Context, resource schema.GroupVersionResource, object *unstructured.Unstructured) error {
	_, err := c.objects.Resource(resource).Namespace(object.GetNamespace()).
		Create(ctx, object, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
	return err
}

// TryDelete asks the server whether it would delete the object. It deletes nothing.
func (c *Cluster) TryDelete(ctx context.Context, object *unstructured.Unstructured) error {
	resource, _, err := c.resource(object)
	if err != nil {
		return err
	}
	err = resource.Delete(ctx, object.GetName(), metav1.DeleteOptions{DryRun: []string{metav1.DryRunAll}})
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}

// Describe names an object as users do.
func Describe(object *unstructured.Unstructured) string {
	name := object.GetName()
	if namespace := object.GetNamespace(); namespace != "" {
		name = namespace + "/" + name
	}
	return object.GetKind() + " " + name
}
