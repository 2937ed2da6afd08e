package admission

import (
	policyv1 "k8s.io/api/policy/v1"
	policyv1beta1 "k8s.io/api/policy/v1beta1"
)

// Evictions returns the kind of the requests to pods/eviction. Their pod is named by the request, and is not in it.
func Evictions() Kind[*policyv1.Eviction] {
	return NewKind(policyv1.GroupName, "Eviction", Hub[policyv1.Eviction]("v1"),
		Spoke[policyv1.Eviction]("v1beta1", Conversion[*policyv1.Eviction, *policyv1beta1.Eviction]{
			ToHub: func(src *policyv1beta1.Eviction, dst *policyv1.Eviction) error {
				dst.ObjectMeta, dst.DeleteOptions = src.ObjectMeta, src.DeleteOptions
				return nil
			},
			FromHub: func(src *policyv1.Eviction, dst *policyv1beta1.Eviction) error {
				dst.ObjectMeta, dst.DeleteOptions = src.ObjectMeta, src.DeleteOptions
				return nil
			},
		}))
}
