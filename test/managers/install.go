package managers

import (
	"context"
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/flotilla-project/flotilla/kustomize/release/overlays"
)

const (
	definition   = "CustomResourceDefinition"
	fieldOwner   = client.FieldOwner("managers")
	pollInterval = 100 * time.Millisecond
	// patience is the longest wait for the API server or a manager.
	patience = 5 * time.Minute
)

// manifests returns the objects of the feature's overlay and components in the tree, for a manager that serves its webhooks at
// the port: without Deployment and Service, and with URLs in place of references to the Service.
func manifests(root, feature string, port int, components ...string) ([]unstructured.Unstructured, error) {
	var kustomization strings.Builder
	fmt.Fprintf(&kustomization, "resources: [../kustomize/overlays/%s]\ncomponents:\n", feature)
	for _, name := range components {
		fmt.Fprintf(&kustomization, "- ../%s/config/%s\n", feature, name)
	}
	text, err := overlays.Render(root, kustomization.String())
	if err != nil {
		return nil, err
	}
	objects, err := overlays.Objects(text)
	if err != nil {
		return nil, err
	}
	return asProcess(objects, net.JoinHostPort("localhost", strconv.Itoa(port))), nil
}

func asProcess(objects []unstructured.Unstructured, webhook string) []unstructured.Unstructured {
	objects = slices.DeleteFunc(objects, func(o unstructured.Unstructured) bool {
		switch o.GetKind() {
		case "Deployment", "DaemonSet", "Service":
			return true
		}
		return false
	})
	for i := range objects {
		withURL(objects[i].Object, webhook)
	}
	return objects
}

// withURL replaces the service in every clientConfig below a value.
func withURL(value any, webhook string) {
	switch value := value.(type) {
	case []any:
		for _, item := range value {
			withURL(item, webhook)
		}
	case map[string]any:
		if config, ok := value["clientConfig"].(map[string]any); ok {
			if service, ok := config["service"].(map[string]any); ok {
				config["url"] = fmt.Sprintf("https://%s%v", webhook, service["path"])
				delete(config, "service")
			}
		}
		for _, field := range value {
			withURL(field, webhook)
		}
	}
}

// apply applies the objects, and returns when the kinds among them are served.
func apply(ctx context.Context, c client.Client, objects []unstructured.Unstructured) error {
	for i := range objects {
		o := objects[i].DeepCopy()
		if err := c.Apply(ctx, client.ApplyConfigurationFromUnstructured(o), fieldOwner, client.ForceOwnership); err != nil {
			return fmt.Errorf("apply %s %s: %w", o.GetKind(), o.GetName(), err)
		}
	}
	for i := range objects {
		if objects[i].GetKind() != definition {
			continue
		}
		o := objects[i].DeepCopy()
		err := await(ctx, "kind "+o.GetName()+" to be served", func(ctx context.Context) (bool, error) {
			if err := c.Get(ctx, client.ObjectKeyFromObject(o), o); err != nil || !isEstablished(o) {
				return false, err
			}
			return found(c.RESTMapper(), o)
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// Define installs the kinds of a feature, and its namespaces with the rights in them, without its programs.
func Define(ctx context.Context, c client.Client, feature string) error {
	objects, err := manifests("", feature, 0)
	if err != nil {
		return err
	}
	objects = slices.DeleteFunc(objects, func(o unstructured.Unstructured) bool {
		switch o.GetKind() {
		case "Namespace", definition, "Role", "RoleBinding":
			return false
		}
		return true
	})
	if err := apply(ctx, c, objects); err != nil {
		return fmt.Errorf("define the kinds of %s: %w", feature, err)
	}
	return nil
}

func isEstablished(o *unstructured.Unstructured) bool {
	conditions, _, _ := unstructured.NestedSlice(o.Object, "status", "conditions")
	return slices.ContainsFunc(conditions, func(c any) bool {
		condition, _ := c.(map[string]any)
		return condition["type"] == "Established" && condition["status"] == "True"
	})
}

// found reports whether discovery names the kind of a CRD in all versions that are served, which is so a moment after it is
// established.
func found(mapper meta.RESTMapper, crd *unstructured.Unstructured) (bool, error) {
	group, _, _ := unstructured.NestedString(crd.Object, "spec", "group")
	kind, _, _ := unstructured.NestedString(crd.Object, "spec", "names", "kind")
	versions, _, _ := unstructured.NestedSlice(crd.Object, "spec", "versions")
	for _, v := range versions {
		version, _ := v.(map[string]any)
		name, _ := version["name"].(string)
		if version["served"] != true {
			continue
		}
		_, err := mapper.RESTMapping(schema.GroupKind{Group: group, Kind: kind}, name)
		if meta.IsNoMatchError(err) {
			return false, nil
		}
		if err != nil {
			return false, err
		}
	}
	return true, nil
}

// remove deletes the objects in the reverse order, and returns when they are gone.
func remove(ctx context.Context, c client.Client, objects []unstructured.Unstructured) error {
	for i := range slices.Backward(objects) {
		if err := client.IgnoreNotFound(c.Delete(ctx, objects[i].DeepCopy())); err != nil {
			return fmt.Errorf("delete %s %s: %w", objects[i].GetKind(), objects[i].GetName(), err)
		}
	}
	for i := range objects {
		o := objects[i].DeepCopy()
		err := await(ctx, "the end of "+o.GetKind()+" "+o.GetName(), func(ctx context.Context) (bool, error) {
			err := c.Get(ctx, client.ObjectKeyFromObject(o), o)
			return err != nil, client.IgnoreNotFound(err)
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// await polls until ask returns true.
func await(ctx context.Context, what string, ask wait.ConditionWithContextFunc) error {
	if err := wait.PollUntilContextTimeout(ctx, pollInterval, patience, true, ask); err != nil {
		return fmt.Errorf("wait for %s: %w", what, err)
	}
	return nil
}
