package record

import (
	"encoding/json"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/flotilla-project/flotilla/core/plan/action"
	"github.com/flotilla-project/flotilla/core/pods/inplace/agentreport"
	"github.com/flotilla-project/flotilla/core/pods/inplace/annotation"
)

// Plain is the metadata that no container's environment reads, written with the first batch.
type Plain struct {
	Metadata

	Finalizers       []string `json:"finalizers,omitempty"`
	DeleteFinalizers []string `json:"$deleteFromPrimitiveList/finalizers,omitempty"`
}

// Metadata is a change of labels and annotations; nil removes a key.
type Metadata struct {
	Labels      map[string]*string `json:"labels,omitempty"`
	Annotations map[string]*string `json:"annotations,omitempty"`
}

// Empty reports whether no key changes.
func (m Metadata) Empty() bool { return len(m.Labels)+len(m.Annotations) == 0 }

// MissingOn leaves out the keys that have their value on the pod.
func (m Metadata) MissingOn(pod *corev1.Pod) Metadata {
	return Metadata{Labels: Differing(pod.Labels, m.Labels), Annotations: Differing(pod.Annotations, m.Annotations)}
}

func (m Metadata) write(c *action.PodChange) {
	for key, value := range m.Labels {
		if value == nil {
			c.RemoveLabel(key)
		} else {
			c.SetLabel(key, *value)
		}
	}
	for key, value := range m.Annotations {
		if value == nil {
			c.RemoveAnnotation(key)
		} else {
			c.SetAnnotation(key, *value)
		}
	}
}

// SharesKey reports whether both change one of the keys.
func (m Metadata) SharesKey(o Metadata) bool {
	return sets.KeySet(m.Labels).HasAny(slices.Collect(maps.Keys(o.Labels))...) ||
		sets.KeySet(m.Annotations).HasAny(slices.Collect(maps.Keys(o.Annotations))...)
}

// Set adds the key of agentreport.FieldLabels or FieldAnnotations with its value, nil to remove it.
func (m *Metadata) Set(field, key string, value *string) {
	list := &m.Labels
	if field == agentreport.FieldAnnotations {
		list = &m.Annotations
	}
	if *list == nil {
		*list = map[string]*string{}
	}
	(*list)[key] = value
}

// Write puts the metadata into c.
func (p Plain) Write(c *action.PodChange) {
	p.Metadata.write(c)
	for _, name := range p.Finalizers {
		c.AddFinalizer(name)
	}
	for _, name := range p.DeleteFinalizers {
		c.RemoveFinalizer(name)
	}
}

// Patch is the change as a strategic merge patch of a pod; nil when it is empty.
func (p Plain) Patch() []byte {
	if p.Empty() && len(p.Finalizers)+len(p.DeleteFinalizers) == 0 {
		return nil
	}
	return []byte(annotation.Encode(map[string]any{"metadata": p}))
}

func parsePlainChange(patch []byte) (Plain, error) {
	var body struct {
		Metadata Plain `json:"metadata"`
	}
	if len(patch) == 0 {
		return Plain{}, nil
	}
	err := json.Unmarshal(patch, &body)
	return body.Metadata, err
}

// Differing leaves out the keys that have their value already.
func Differing(have map[string]string, want map[string]*string) map[string]*string {
	var rest map[string]*string
	for key, value := range want {
		old, ok := have[key]
		if value == nil && !ok || value != nil && ok && *value == old {
			continue
		}
		if rest == nil {
			rest = map[string]*string{}
		}
		rest[key] = value
	}
	return rest
}
