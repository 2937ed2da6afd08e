package conversion

import (
	"encoding/json"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/flotilla-project/flotilla/core/contract"
	"github.com/flotilla-project/flotilla/core/operator/admission"

	"github.com/flotilla-project/flotilla/daemon/api/v1alpha1"
	"github.com/flotilla-project/flotilla/daemon/api/v1beta1"
)

// NodeImages returns the kind NodeImage in its versions.
func NodeImages() admission.Kind[*v1beta1.NodeImage] {
	return admission.NewKind(contract.AppsGroup, v1beta1.NodeImageKind,
		admission.Hub[v1beta1.NodeImage](v1beta1.GroupVersion.Version),
		admission.Spoke[v1beta1.NodeImage](v1alpha1.GroupVersion.Version,
			admission.Conversion[*v1beta1.NodeImage, *v1alpha1.NodeImage]{ToHub: nodeImageToHub, FromHub: nodeImageFromHub}))
}

// RecreateRequests returns the kind ContainerRecreateRequest in its versions.
func RecreateRequests() admission.Kind[*v1beta1.ContainerRecreateRequest] {
	return admission.NewKind(contract.AppsGroup, v1beta1.ContainerRecreateRequestKind,
		admission.Hub[v1beta1.ContainerRecreateRequest](v1beta1.GroupVersion.Version),
		admission.Spoke[v1beta1.ContainerRecreateRequest](v1alpha1.GroupVersion.Version,
			admission.Conversion[*v1beta1.ContainerRecreateRequest, *v1alpha1.ContainerRecreateRequest]{
				ToHub: recreateToHub, FromHub: recreateFromHub,
			}))
}

// Convert returns the JSON of an object of either kind in the wanted apiVersion.
func Convert(raw []byte, apiVersion string) ([]byte, error) {
	var sent metav1.TypeMeta
	if err := json.Unmarshal(raw, &sent); err != nil {
		return nil, fmt.Errorf("decode: %w", err)
	}
	switch {
	case sent.APIVersion == apiVersion:
		return raw, nil
	case sent.Kind == v1beta1.NodeImageKind:
		return NodeImages().Convert(raw, apiVersion)
	case sent.Kind == v1beta1.ContainerRecreateRequestKind:
		return RecreateRequests().Convert(raw, apiVersion)
	}
	return nil, fmt.Errorf("unsupported kind: %q", sent.Kind)
}

// recode fills dst with the fields that it shares with src: those with the same JSON name and form in both versions.
// The caller converts the others. The two objects share no memory.
func recode(src, dst any) error {
	raw, err := json.Marshal(src)
	if err != nil {
		return fmt.Errorf("encode: %w", err)
	}
	if err := json.Unmarshal(raw, dst); err != nil {
		return fmt.Errorf("decode: %w", err)
	}
	return nil
}
