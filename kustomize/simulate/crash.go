package simulate

import (
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/flotilla-project/flotilla/kustomize/cli"
)

// crashing returns the images of the pod template that are to crash. A user names one as it is, by its last part, or as
// CONTAINER:TAG.
func crashing(set *unstructured.Unstructured, named []string) ([]string, error) {
	var found []string
	for _, name := range named {
		before := len(found)
		var there []string
		for _, list := range []string{"initContainers", "containers"} {
			containers, _, _ := unstructured.NestedSlice(set.Object, "spec", "template", "spec", list)
			for _, c := range containers {
				fields, _ := c.(map[string]any)
				image, _, _ := unstructured.NestedString(fields, "image")
				container, _, _ := unstructured.NestedString(fields, "name")
				there = append(there, image)
				tag := image[strings.LastIndex(image, ":")+1:]
				if image == name || strings.HasSuffix(image, "/"+name) || container+":"+tag == name {
					found = append(found, image)
				}
			}
		}
		if len(found) == before {
			return nil, cli.MisuseErrorf("--crash %s: after the edit no container has this image; use one of %s", name, strings.Join(there, ", "))
		}
	}
	slices.Sort(found)
	return slices.Compact(found), nil
}
