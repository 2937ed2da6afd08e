package bundle

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/yaml"
)

// folderVariable names the folder below which bundles are kept. Without it that is a folder of the system's temporary files.
const folderVariable = "FLOTILLA_BUNDLES"

// Folder makes the folder of a test's bundle and returns its path, which the test logs. Each call makes a new one.
func Folder(t testing.TB) (string, error) {
	t.Helper()
	below := os.Getenv(folderVariable)
	if below == "" {
		below = filepath.Join(os.TempDir(), "flotilla-bundles")
	}
	if err := os.MkdirAll(below, 0o755); err != nil {
		return "", fmt.Errorf("make the folder of bundles: %w", err)
	}
	folder, err := os.MkdirTemp(below, strings.ReplaceAll(t.Name(), "/", ".")+"-") //nolint:usetesting // it outlives the test
	if err != nil {
		return "", fmt.Errorf("make a folder of %s: %w", below, err)
	}
	t.Logf("objects, events and logs are kept in %s", folder)
	return folder, nil
}

// Write writes the objects of the namespace into the folder, a file of YAML for each resource that has any, and its events
// into events.txt, oldest first. It writes all that it can read and returns the errors of the rest.
func Write(ctx context.Context, config *rest.Config, namespace, folder string) error {
	resources, err := Resources(config)
	problems := []error{err}
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		return fmt.Errorf("make a client: %w", err)
	}
	for _, r := range resources {
		list, err := client.Resource(r).Namespace(namespace).List(ctx, metav1.ListOptions{})
		if err != nil {
			problems = append(problems, fmt.Errorf("list %s: %w", r.Resource, err))
			continue
		}
		problems = append(problems, writeObjects(filepath.Join(folder, r.GroupResource().String()+".yaml"), list))
	}
	return errors.Join(append(problems, writeEvents(ctx, config, namespace, folder))...)
}

// Resources returns the namespaced resources that can be listed and deleted, but for events. When some groups do not
// answer, it returns those of the others and an error.
func Resources(config *rest.Config) ([]schema.GroupVersionResource, error) {
	client, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("make a client for discovery: %w", err)
	}
	lists, err := discovery.ServerPreferredNamespacedResources(client)
	if err != nil {
		err = fmt.Errorf("discover the resources: %w", err)
	}
	var all []schema.GroupVersionResource
	for _, list := range lists {
		version, err := schema.ParseGroupVersion(list.GroupVersion)
		if err != nil {
			return nil, fmt.Errorf("parse %s: %w", list.GroupVersion, err)
		}
		for _, r := range list.APIResources {
			if r.Name != "events" && slices.Contains(r.Verbs, "list") && slices.Contains(r.Verbs, "delete") {
				all = append(all, version.WithResource(r.Name))
			}
		}
	}
	return all, err
}

func writeObjects(file string, list *unstructured.UnstructuredList) error {
	if len(list.Items) == 0 {
		return nil
	}
	var text strings.Builder
	for i := range list.Items {
		unstructured.RemoveNestedField(list.Items[i].Object, "metadata", "managedFields")
		o, err := yaml.Marshal(list.Items[i].Object)
		if err != nil {
			return fmt.Errorf("write %s as YAML: %w", list.Items[i].GetName(), err)
		}
		text.WriteString("---\n" + string(o))
	}
	return os.WriteFile(file, []byte(text.String()), 0o600)
}

func writeEvents(ctx context.Context, config *rest.Config, namespace, folder string) error {
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return fmt.Errorf("make a client of events: %w", err)
	}
	list, err := client.CoreV1().Events(namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return fmt.Errorf("list the events: %w", err)
	}
	slices.SortStableFunc(list.Items, func(a, b corev1.Event) int { return a.CreationTimestamp.Compare(b.CreationTimestamp.Time) })
	var text strings.Builder
	for i := range list.Items {
		e := &list.Items[i]
		fmt.Fprintf(&text, "%s %s %s/%s %s: %s\n", e.CreationTimestamp.Format("15:04:05"), e.Type, e.InvolvedObject.Kind, e.InvolvedObject.Name, e.Reason, e.Message)
	}
	return os.WriteFile(filepath.Join(folder, "events.txt"), []byte(text.String()), 0o600)
}
