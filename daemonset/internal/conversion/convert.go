package conversion

import (
	"maps"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/flotilla-project/flotilla/core/operator/conversion"
	"github.com/flotilla-project/flotilla/daemonset/api/v1alpha1"
	"github.com/flotilla-project/flotilla/daemonset/api/v1beta1"
)

// Convert returns the JSON of a DaemonSet in the wanted apiVersion. Every field that it carries over is as it was
// written: "cpu: 0.5" stays, and so does a false that a user wrote down.
func Convert(raw []byte, apiVersion string) ([]byte, error) {
	hub := v1beta1.GroupVersion.String()
	spoke := v1alpha1.GroupVersion.String()
	return conversion.Versions{Hub: hub, Spoke: spoke, ToHub: toHub, FromHub: fromHub}.Convert(raw, apiVersion)
}

// ToHub fills an empty hub object from a v1alpha1 one.
func ToHub(src *v1alpha1.DaemonSet, dst *v1beta1.DaemonSet) error {
	return conversion.ViaJSON(src, dst, toHub)
}

// FromHub fills an empty v1alpha1 object from the hub.
func FromHub(src *v1beta1.DaemonSet, dst *v1alpha1.DaemonSet) error {
	return conversion.ViaJSON(src, dst, fromHub)
}

// V1alpha1Path is the path by which users of v1alpha1 know a field path of the hub.
func V1alpha1Path(path string) string {
	if rest, ok := strings.CutPrefix(path, "spec.scaleStrategy"); ok && (rest == "" || rest[0] == '.') {
		return field.NewPath("metadata", "annotations").Key(v1beta1.ProgressiveCreatePodAnnotation).String()
	}
	return path
}

func toHub(src conversion.Object) (conversion.Object, error) {
	out := maps.Clone(src)
	rename(out, "daemonSetHash", "updateRevision")
	if text, _ := conversion.AnnotationIn(out, v1beta1.ProgressiveCreatePodAnnotation); text == "true" {
		conversion.RemoveAnnotationFrom(out, v1beta1.ProgressiveCreatePodAnnotation)
		out["spec"] = conversion.WithMembers(conversion.Member(out, "spec"), conversion.Object{
			"scaleStrategy": conversion.Object{"partitionedScaling": true},
		}, "scaleStrategy")
	}
	standardize(out)
	return out, nil
}

// fromHub writes the annotation if the field is true. An object without the field that has the annotation was stored
// before the field was there: the annotation stands for it.
func fromHub(src conversion.Object) (conversion.Object, error) {
	out := maps.Clone(src)
	rename(out, "updateRevision", "daemonSetHash")
	spec := conversion.Member(out, "spec")
	if _, written := spec["scaleStrategy"]; !written {
		return out, nil
	}
	out["spec"] = conversion.WithMembers(spec, nil, "scaleStrategy")
	if conversion.Member(spec, "scaleStrategy")["partitionedScaling"] == true {
		return out, conversion.PutAnnotationIn(out, v1beta1.ProgressiveCreatePodAnnotation, true)
	}
	if text, _ := conversion.AnnotationIn(out, v1beta1.ProgressiveCreatePodAnnotation); text == "true" {
		conversion.RemoveAnnotationFrom(out, v1beta1.ProgressiveCreatePodAnnotation)
	}
	return out, nil
}

// rename gives a member of the status another name.
func rename(object conversion.Object, from, to string) {
	status := conversion.Member(object, "status")
	if value, ok := status[from]; ok {
		object["status"] = conversion.WithMembers(status, conversion.Object{to: value}, from, to)
	}
}

// standardize writes Surging in the words of the hub: Standard with a surge of one node unless there are numbers.
func standardize(object conversion.Object) {
	path := []string{"spec", "updateStrategy", "rollingUpdate"}
	rolling := conversion.Member(object, path...)
	if rolling["rollingUpdateType"] != string(v1beta1.SurgingRollingUpdateType) {
		return
	}
	says := conversion.Object{
		"rollingUpdateType": string(v1beta1.StandardRollingUpdateType),
		"maxSurge":          int64(1),
		"maxUnavailable":    int64(0),
	}
	for _, name := range []string{"maxSurge", "maxUnavailable"} {
		if number := rolling[name]; number != nil {
			says[name] = number
		}
	}
	changed := conversion.WithMembers(rolling, says, "rollingUpdateType", "maxSurge", "maxUnavailable")
	for i := len(path) - 1; i > 0; i-- {
		changed = conversion.WithMembers(conversion.Member(object, path[:i]...), conversion.Object{path[i]: changed}, path[i])
	}
	object[path[0]] = changed
}
