package admission

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Version decodes one served version of a kind to its hub, and encodes it again. Create it with Hub or Spoke.
type Version[H client.Object] struct {
	name   string
	decode func(raw []byte) (H, error)
	encode func(H) ([]byte, error)
	path   func(string) string
}

// Hub returns the version that rules are written for. T is the struct type of the kind:
// Hub[v1beta1.CloneSet]("v1beta1").
func Hub[T any, H pointer[T]](name string) Version[H] {
	return Version[H]{
		name: name,
		decode: func(raw []byte) (H, error) {
			hub := H(new(T))
			return hub, decode(raw, hub)
		},
		encode: func(hub H) ([]byte, error) { return json.Marshal(hub) },
		path:   func(path string) string { return path },
	}
}

// Conversion converts a spoke version of a kind to the hub and back. Both functions fill an empty destination, except
// for apiVersion and kind, and may keep parts of the source: it is not used afterwards.
type Conversion[H, S any] struct {
	ToHub   func(src S, dst H) error
	FromHub func(src H, dst S) error
	// Path maps a field path of the hub, such as spec.updateStrategy.maxUnavailable, to the path in this version. Nil
	// keeps paths as they are.
	Path func(hub string) string
}

// Spoke returns a version that is converted before rules see it. S is the struct type of the kind in this version.
func Spoke[T, S any, H pointer[T], P pointer[S]](name string, conversion Conversion[H, P]) Version[H] {
	path := conversion.Path
	if path == nil {
		path = func(path string) string { return path }
	}
	return Version[H]{
		name: name,
		decode: func(raw []byte) (H, error) {
			spoke, hub := P(new(S)), H(new(T))
			if err := decode(raw, spoke); err != nil {
				return hub, err
			}
			return hub, conversion.ToHub(spoke, hub)
		},
		encode: func(hub H) ([]byte, error) {
			spoke := P(new(S))
			// The conversion may keep parts of its source, which rules then change.
			if err := conversion.FromHub(hub.DeepCopyObject().(H), spoke); err != nil {
				return nil, err
			}
			return json.Marshal(spoke)
		},
		path: path,
	}
}

// pointer is a pointer to T that is an API object.
type pointer[T any] interface {
	*T
	client.Object
}

// decode decodes JSON as the API server does: names are case sensitive, integers stay integers.
func decode(raw []byte, into any) error {
	if len(raw) == 0 {
		return errors.New("the request lacks an object")
	}
	return utiljson.Unmarshal(raw, into)
}

// Kind is one API kind with the versions that it is served in.
type Kind[H client.Object] struct {
	gk     schema.GroupKind
	hub    Version[H]
	spokes []Version[H]
}

// NewKind returns a kind with its hub and the other served versions. A foreign kind has the version that its webhooks
// ask for: NewKind("", "Pod", Hub[corev1.Pod]("v1")).
func NewKind[H client.Object](group, kind string, hub Version[H], spokes ...Version[H]) Kind[H] {
	return Kind[H]{
		gk:     schema.GroupKind{Group: group, Kind: kind},
		hub:    hub,
		spokes: spokes,
	}
}

// MutatePath returns the path of the mutating webhook, such as /mutate-apps-kruise-io-cloneset or /mutate-pod. The
// webhook configurations in users' clusters name it.
func (k Kind[H]) MutatePath() string { return "/mutate-" + k.path() }

// ValidatePath returns the path of the validating webhook of the kind and of its subresources.
func (k Kind[H]) ValidatePath() string { return "/validate-" + k.path() }

func (k Kind[H]) path() string {
	kind := strings.ToLower(k.gk.Kind)
	if k.gk.Group == "" {
		return kind
	}
	return strings.ReplaceAll(k.gk.Group, ".", "-") + "-" + kind
}

// version returns the version with that name, such as v1alpha1.
func (k Kind[H]) version(name string) (Version[H], error) {
	if name == k.hub.name {
		return k.hub, nil
	}
	for _, spoke := range k.spokes {
		if name == spoke.name {
			return spoke, nil
		}
	}
	return Version[H]{}, fmt.Errorf("unsupported version: %s", name)
}

// objectName returns the name for error messages: metadata.name can still be empty, with a generateName.
func objectName(name string, meta metav1.Object) string {
	if name == "" && meta.GetGenerateName() != "" {
		return meta.GetGenerateName()
	}
	return name
}
