package revision

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"hash/fnv"
	"maps"
	"strconv"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/rand"

	"github.com/flotilla-project/flotilla/core/contract"
	"github.com/flotilla-project/flotilla/core/pods/podstate"
)

// longestPrefix leaves room in a name of 253 characters for "-" and a hash.
const longestPrefix = 223

// errNoTemplate means that the data of a revision is not of the form that New writes.
var errNoTemplate = errors.New("data lacks spec.template")

// New is the ControllerRevision of a template: named <owner>-<hash>, with the template's labels and the hash as labels,
// owned by owner. The hash covers the template and the collision count, which separates revisions that have different
// templates but equal hashes.
func New(owner metav1.Object, gvk schema.GroupVersionKind, template *corev1.PodTemplateSpec, number int64, collision int32) (*appsv1.ControllerRevision, error) {
	data, err := encode(template)
	if err != nil {
		return nil, fmt.Errorf("encode the template of %s: %w", owner.GetName(), err)
	}
	hash := hashOf(data, collision)
	labels := maps.Clone(template.Labels)
	if labels == nil {
		labels = map[string]string{}
	}
	labels[contract.RevisionHashLabel] = hash
	prefix := owner.GetName()
	return &appsv1.ControllerRevision{
		ObjectMeta: metav1.ObjectMeta{
			Name:            prefix[:min(len(prefix), longestPrefix)] + "-" + hash,
			Namespace:       owner.GetNamespace(),
			Labels:          labels,
			OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(owner, gvk)},
		},
		Data:     runtime.RawExtension{Raw: data},
		Revision: number,
	}, nil
}

// hashOf is FNV-1, 32 bits, over the data and the collision count as decimal text, also when it is 0.
func hashOf(data []byte, collision int32) string {
	h := fnv.New32()
	_, _ = h.Write(data) // the hash never returns an error
	_, _ = h.Write(strconv.AppendInt(nil, int64(collision), 10))
	return rand.SafeEncodeString(strconv.FormatUint(uint64(h.Sum32()), 10))
}

// encode is {"spec":{"template":{..., "$patch":"replace"}}} with sorted keys.
func encode(template *corev1.PodTemplateSpec) ([]byte, error) {
	text, err := json.Marshal(template)
	if err != nil {
		return nil, err
	}
	var tree map[string]any
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.UseNumber() // keeps integers that a float64 cannot hold
	if err := decoder.Decode(&tree); err != nil {
		return nil, err
	}
	writeCreationTimestamps(tree)
	tree["$patch"] = "replace"
	return json.Marshal(map[string]any{"spec": map[string]any{"template": tree}})
}

// writeCreationTimestamps puts "creationTimestamp":null where Kubernetes' libraries before 1.34 wrote
// it. All stored revisions have it; without it equal templates would have other names, and going back
// to an operator that compares bytes would start a rollout.
func writeCreationTimestamps(template map[string]any) {
	stamp := func(holder map[string]any) {
		metadata, ok := holder["metadata"].(map[string]any)
		if !ok {
			metadata = map[string]any{}
			holder["metadata"] = metadata
		}
		if _, set := metadata["creationTimestamp"]; !set {
			metadata["creationTimestamp"] = nil
		}
	}
	stamp(template)
	spec, _ := template["spec"].(map[string]any)
	volumes, _ := spec["volumes"].([]any)
	for _, v := range volumes {
		volume, _ := v.(map[string]any)
		ephemeral, _ := volume["ephemeral"].(map[string]any)
		if claim, ok := ephemeral["volumeClaimTemplate"].(map[string]any); ok {
			stamp(claim)
		}
	}
}

// Template is the template that a revision holds, as it was stored: nothing is defaulted.
func Template(r *appsv1.ControllerRevision) (*corev1.PodTemplateSpec, error) {
	var data struct {
		Spec struct {
			Template *corev1.PodTemplateSpec `json:"template"`
		} `json:"spec"`
	}
	if err := json.Unmarshal(r.Data.Raw, &data); err != nil {
		return nil, fmt.Errorf("decode revision %s: %w", r.Name, err)
	}
	if data.Spec.Template == nil {
		return nil, fmt.Errorf("decode revision %s: %w", r.Name, errNoTemplate)
	}
	return data.Spec.Template, nil
}

// maxLabelValue is the longest label value that Kubernetes takes.
const maxLabelValue = 63

// Labels show the revision of a pod: the revision label holds the revision's name, or its hash alone where the name is
// too long for a label.
func Labels(name string) map[string]string {
	if len(name) > maxLabelValue {
		name = podstate.ShortHash(name)
	}
	return map[string]string{contract.RevisionLabel: name}
}

// Hash is the short hash of a revision, the end of its name. Pods of the revision carry it, alone or
// at the end of the name, in their revision label.
func Hash(r *appsv1.ControllerRevision) string { return podstate.ShortHash(r.Name) }
