package simulate

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/jsonmergepatch"

	"github.com/flotilla-project/flotilla/kustomize/cli"
	"github.com/flotilla-project/flotilla/kustomize/workload"
)

// lastApplied is the annotation in which kubectl apply keeps the manifest of before.
const lastApplied = "kubectl.kubernetes.io/last-applied-configuration"

// change is an edit as the command line has it.
type change struct {
	manifest  *unstructured.Unstructured // of -f, nil without it
	images    map[string]string          // by container
	partition string                     // empty: as it is
}

// none reports whether nothing is edited.
func (c change) none() bool { return c.manifest == nil && len(c.images) == 0 && c.partition == "" }

// apply returns the workload as the edit leaves it, before the API server has defaulted it. A manifest is applied as kubectl
// apply does: fields that were applied before and are no longer in it are removed.
func (c change) apply(kind workload.Kind, live *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	edited := live.DeepCopy()
	if c.manifest != nil {
		merged, err := merge(live, c.manifest)
		if err != nil {
			return nil, err
		}
		edited = merged
	}
	for container, image := range c.images {
		if err := setImage(edited, container, image); err != nil {
			return nil, err
		}
	}
	if c.partition != "" {
		set, err := workload.Read(kind, edited)
		if err != nil {
			return nil, err
		}
		var value any = c.partition
		if n, err := strconv.ParseInt(c.partition, 10, 32); err == nil {
			value = n
		} else if !strings.HasSuffix(c.partition, "%") {
			return nil, cli.MisuseErrorf("--partition %s is neither a number of pods nor a percentage", c.partition)
		}
		if err := unstructured.SetNestedField(edited.Object, value, append(set.RollingUpdatePath(), "partition")...); err != nil {
			return nil, fmt.Errorf("set the partition of %s: %w", set, err)
		}
	}
	return edited, nil
}

// merge applies a manifest to the live object.
func merge(live, manifest *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	current, err := json.Marshal(live.Object)
	if err != nil {
		return nil, fmt.Errorf("apply %s: %w", manifest.GetName(), err)
	}
	modified, err := json.Marshal(manifest.Object)
	if err != nil {
		return nil, fmt.Errorf("apply %s: %w", manifest.GetName(), err)
	}
	patch, err := jsonmergepatch.CreateThreeWayJSONMergePatch([]byte(live.GetAnnotations()[lastApplied]), modified, current)
	if err != nil {
		return nil, fmt.Errorf("apply %s: %w", manifest.GetName(), err)
	}
	merged, err := jsonpatch.MergePatch(current, patch)
	if err != nil {
		return nil, fmt.Errorf("apply %s: %w", manifest.GetName(), err)
	}
	edited := &unstructured.Unstructured{}
	if err := edited.UnmarshalJSON(merged); err != nil {
		return nil, fmt.Errorf("apply %s: %w", manifest.GetName(), err)
	}
	return edited, nil
}

// setImage gives a container or init container of the pod template another image; "*" are all containers, as for kubectl
// set image.
func setImage(set *unstructured.Unstructured, container, image string) error {
	found := false
	var names []string
	for _, list := range []string{"containers", "initContainers"} {
		path := []string{"spec", "template", "spec", list}
		containers, _, err := unstructured.NestedSlice(set.Object, path...)
		if err != nil {
			return fmt.Errorf("read the containers of %s: %w", set.GetName(), err)
		}
		for _, c := range containers {
			fields, ok := c.(map[string]any)
			if !ok {
				continue
			}
			name, _, _ := unstructured.NestedString(fields, "name")
			names = append(names, name)
			if name == container || container == "*" && list == "containers" {
				fields["image"], found = image, true
			}
		}
		if len(containers) == 0 {
			continue
		}
		if err := unstructured.SetNestedSlice(set.Object, containers, path...); err != nil {
			return fmt.Errorf("set the image of %s: %w", set.GetName(), err)
		}
	}
	if !found {
		return cli.MisuseErrorf("%s has no container %q; use %s", set.GetName(), container, strings.Join(names, ", "))
	}
	return nil
}

// parseImages reads CONTAINER=IMAGE.
func parseImages(all []string) (map[string]string, error) {
	images := map[string]string{}
	for _, text := range all {
		container, image, ok := strings.Cut(text, "=")
		if !ok || container == "" || image == "" {
			return nil, cli.MisuseErrorf("--set-image %s: use CONTAINER=IMAGE, such as main=registry.example.com/app:v2", text)
		}
		images[container] = image
	}
	return images, nil
}
