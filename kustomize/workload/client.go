package workload

import (
	"context"
	"fmt"
	"os"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/flotilla-project/flotilla/kustomize/apply"
)

// manager owns the fields that commands write.
const manager = "flotilla"

// Client reaches the workloads of one namespace.
type Client struct {
	Namespace string
	Dynamic   dynamic.Interface
	Core      kubernetes.Interface

	discovery discovery.DiscoveryInterface
}

// Connect returns a client for the cluster and the namespace that flags name.
func Connect(flags genericclioptions.RESTClientGetter) (*Client, error) {
	namespace, _, err := flags.ToRawKubeConfigLoader().Namespace()
	if err != nil {
		return nil, err
	}
	config, err := flags.ToRESTConfig()
	if err != nil {
		return nil, err
	}
	config = apply.Repeating(config)
	config.QPS = -1 // the server's fair queueing limits a command, which makes few requests
	config.WarningHandler = rest.NewWarningWriter(os.Stderr, rest.WarningWriterOptions{Deduplicate: true})
	c := &Client{Namespace: namespace}
	if c.Dynamic, err = dynamic.NewForConfig(config); err != nil {
		return nil, fmt.Errorf("create a client: %w", err)
	}
	clientset, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("create a client: %w", err)
	}
	c.Core, c.discovery = clientset, clientset
	return c, nil
}

// Served returns the resource of a kind in the best version that the cluster serves.
func (c *Client) Served(kind Kind) (schema.GroupVersionResource, error) {
	for _, version := range Versions() {
		list, err := c.discovery.ServerResourcesForGroupVersion(Group + "/" + version)
		if apierrors.IsNotFound(err) {
			continue
		}
		if err != nil {
			return schema.GroupVersionResource{}, fmt.Errorf("read the kinds that the cluster serves: %w", err)
		}
		for _, resource := range list.APIResources {
			if resource.Name == kind.Resource {
				return kind.In(version), nil
			}
		}
	}
	return schema.GroupVersionResource{}, fmt.Errorf(
		"this cluster does not serve %s of %s; to install it: flotilla install %s", kind.Name, Group, kind.Feature)
}

// Get reads a workload.
func (c *Client) Get(ctx context.Context, named Named) (*Set, error) {
	resource, err := c.Served(named.Kind)
	if err != nil {
		return nil, err
	}
	object, err := c.Dynamic.Resource(resource).Namespace(c.Namespace).Get(ctx, named.Name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil, fmt.Errorf("%s not found in namespace %s: %w", named, c.Namespace, err)
	}
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", named, err)
	}
	return Read(named.Kind, object)
}

// Edit writes an edit of a workload. A dry run is judged by the server and not stored.
func (c *Client) Edit(ctx context.Context, s *Set, patch Patch, dryRun bool) error {
	options := metav1.PatchOptions{FieldManager: manager}
	if dryRun {
		options.DryRun = []string{metav1.DryRunAll}
	}
	_, err := c.Dynamic.Resource(s.Kind.In(s.Version)).Namespace(s.Namespace).
		Patch(ctx, s.Name, patch.Type, patch.Body, options)
	if err != nil {
		return fmt.Errorf("edit %s: %w", s, err)
	}
	return nil
}

// Pods lists the pods of a workload.
func (c *Client) Pods(ctx context.Context, s *Set) ([]*corev1.Pod, error) {
	list, err := c.Core.CoreV1().Pods(s.Namespace).List(ctx, metav1.ListOptions{LabelSelector: s.Selector.String()})
	if err != nil {
		return nil, fmt.Errorf("list the pods of %s: %w", s, err)
	}
	var pods []*corev1.Pod
	for i := range list.Items {
		if s.Owns(&list.Items[i]) {
			pods = append(pods, &list.Items[i])
		}
	}
	return pods, nil
}

// Owns reports whether the workload is the controller of an object.
func (s *Set) Owns(object metav1.Object) bool {
	controller := metav1.GetControllerOfNoCopy(object)
	return controller != nil && controller.UID == s.UID
}
