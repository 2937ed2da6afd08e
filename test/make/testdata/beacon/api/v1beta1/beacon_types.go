package v1beta1

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Beacon is a workload that no other feature knows.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:storageversion
type Beacon struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec   BeaconSpec   `json:"spec,omitempty"`
	Status BeaconStatus `json:"status,omitempty"`
}

// BeaconSpec is what a user wants.
type BeaconSpec struct {
	// Template describes the pods.
	Template corev1.PodTemplateSpec `json:"template"`
}

// BeaconStatus is what the operator has seen.
type BeaconStatus struct {
	// ObservedGeneration is the generation that the status is of.
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
}

// BeaconList is a list of Beacons.
//
// +kubebuilder:object:root=true
type BeaconList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []Beacon `json:"items"`
}
