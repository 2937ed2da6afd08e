package testenv

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/metadata"
)

// serversOwn are the resources that the API server, and operators that lead, write at any time.
func serversOwn() []schema.GroupResource {
	return []schema.GroupResource{
		{Resource: "events"}, {Group: "events.k8s.io", Resource: "events"}, {Resource: "componentstatuses"},
		{Group: "apiregistration.k8s.io", Resource: "apiservices"}, {Group: "coordination.k8s.io", Resource: "leases"},
		{Group: "flowcontrol.apiserver.k8s.io", Resource: "flowschemas"},
		{Group: "flowcontrol.apiserver.k8s.io", Resource: "prioritylevelconfigurations"},
	}
}

// simulatedLabel is on simulated nodes, which a later simulation of the package takes over.
const simulatedLabel = "simulated-node"

func serversNamespaces() []string { return []string{"kube-system", "kube-public", "kube-node-lease"} }

// object is what can be told of any object.
type object struct {
	resource, namespace, name string
	uid                       types.UID
}

func (o object) String() string {
	if o.namespace == "" {
		return o.resource + " " + o.name
	}
	return o.resource + " " + o.namespace + "/" + o.name
}

// objects returns all objects that are not the API server's own. Namespaces that are terminating count as gone, with all that
// is in them, because nobody is there to empty them.
func (e *Environment) objects(ctx context.Context) ([]object, error) {
	client, err := metadata.NewForConfig(e.cleaner)
	if err != nil {
		return nil, fmt.Errorf("make a client: %w", err)
	}
	resources, err := e.resources()
	if err != nil {
		return nil, err
	}
	var all []object
	going := map[string]bool{}
	for _, resource := range resources {
		there, err := client.Resource(resource).List(ctx, metav1.ListOptions{})
		if err != nil {
			continue // it is stored in a version that only a webhook can convert
		}
		for i := range there.Items {
			o := &there.Items[i]
			if o.DeletionTimestamp != nil && resource.Resource == "namespaces" {
				going[o.Name] = true
				continue
			}
			if !isServers(o) && o.Labels[simulatedLabel] == "" {
				all = append(all, object{resource.GroupResource().String(), o.Namespace, o.Name, o.UID})
			}
		}
	}
	return slices.DeleteFunc(all, func(o object) bool { return going[o.namespace] }), nil
}

// resources returns the resources that can be listed and deleted and that are not the API server's own.
func (e *Environment) resources() ([]schema.GroupVersionResource, error) {
	found, err := discovery.NewDiscoveryClientForConfig(e.cleaner)
	if err != nil {
		return nil, fmt.Errorf("make a client for discovery: %w", err)
	}
	lists, err := found.ServerPreferredResources()
	if err != nil && !discovery.IsGroupDiscoveryFailedError(err) { // a group may just have come or gone
		return nil, fmt.Errorf("discover the resources: %w", err)
	}
	var all []schema.GroupVersionResource
	for _, list := range lists {
		version, err := schema.ParseGroupVersion(list.GroupVersion)
		if err != nil {
			return nil, fmt.Errorf("parse %s: %w", list.GroupVersion, err)
		}
		for _, r := range list.APIResources {
			resource := version.WithResource(r.Name)
			if slices.Contains(r.Verbs, "list") && slices.Contains(r.Verbs, "delete") && !slices.Contains(serversOwn(), resource.GroupResource()) {
				all = append(all, resource)
			}
		}
	}
	return all, nil
}

// isServers reports whether the API server makes the object, which may be after the start of the tests: its own Service, for
// instance, and the addresses of that.
func isServers(o *metav1.PartialObjectMetadata) bool {
	ownService := o.Namespace == metav1.NamespaceDefault && o.Name == "kubernetes"
	return ownService || slices.Contains(serversNamespaces(), o.Namespace) || o.Labels["kubernetes.io/bootstrapping"] != ""
}

// checkLeftBehind says which objects the tests left behind, and returns the exit code of that.
func (e *Environment) checkLeftBehind() int {
	ctx, stop := context.WithTimeout(context.Background(), cleanTime)
	defer stop()
	left, err := e.leftBehind(ctx)
	if err == nil && len(left) > 0 {
		// A request that was under way when its namespace went may have made an object in it.
		for namespace := range e.tests.namespaces {
			_ = e.empty(ctx, namespace) // what stays is named below
		}
		left, err = e.leftBehind(ctx)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "testenv: look for objects that tests left behind:", err)
		return 1
	}
	if len(left) == 0 {
		return 0
	}
	fmt.Fprintf(os.Stderr, "testenv: tests left %d objects behind:\n\t%s\n", len(left), strings.Join(left, "\n\t"))
	return 1
}

// leftBehind returns the objects that are there now and were not at the start, each with the test in whose namespace it is
// or the client that made it. User agents of tests' clients end with the name of the test.
func (e *Environment) leftBehind(ctx context.Context) ([]string, error) {
	now, err := e.objects(ctx)
	if err != nil {
		return nil, err
	}
	left := slices.DeleteFunc(now, func(o object) bool { return e.tests.shared[o.uid] || slices.Contains(e.before, o) })
	if len(left) == 0 {
		return nil, nil
	}
	makers, err := e.makers()
	if err != nil {
		return nil, err
	}
	var texts []string
	for _, o := range left {
		maker := e.tests.namespaces[o.namespace]
		if maker == "" {
			maker = cmp.Or(makers[o.String()], "an unknown client")
		}
		texts = append(texts, o.String()+" of "+maker)
	}
	return texts, nil
}

// makers returns the user agents of the clients that made objects, by the texts of the objects.
func (e *Environment) makers() (map[string]string, error) {
	log, err := os.ReadFile(e.audit)
	if err != nil {
		return nil, fmt.Errorf("read the audit log: %w", err)
	}
	makers := map[string]string{}
	for line := range bytes.Lines(log) {
		var r Request
		if err := json.Unmarshal(line, &r); err != nil {
			return nil, fmt.Errorf("read the audit log: %w", err)
		}
		if o := r.Object; o.Subresource == "" && (r.Verb == "create" || r.Verb == "patch") {
			resource := schema.GroupResource{Group: o.Group, Resource: o.Resource}
			makers[object{resource: resource.String(), namespace: o.Namespace, name: o.Name}.String()] = r.UserAgent
		}
	}
	return makers, nil
}
