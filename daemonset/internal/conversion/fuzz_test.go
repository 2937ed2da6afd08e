package conversion

import (
	"testing"

	"github.com/flotilla-project/flotilla/core/testing/fuzz"
)

func FuzzConvert(f *testing.F) {
	fuzz.Conversion{Convert: Convert, CRD: fuzz.ReadCRD(f, "../../config/crd/daemonsets.yaml")}.Run(f, append(
		fuzz.Read(f, "../../config/samples/*.yaml"),
		[]byte(`{"kind":"DaemonSet","apiVersion":"apps.kruise.io/v1beta1","spec":{"scaleStrategy":[true]},"metadata":{"annotations":{"daemonset.kruise.io/progressive-create-pod":true}}}`),
		[]byte(`{"kind":"DaemonSet","apiVersion":"apps.kruise.io/v1alpha1","spec":null,"metadata":{"annotations":{"daemonset.kruise.io/progressive-create-pod":"true"}}}`),
		[]byte(`{"kind":"DaemonSet","apiVersion":"apps.kruise.io/v1alpha1","spec":{"updateStrategy":{"rollingUpdate":{"rollingUpdateType":"Surging"}}},"status":{"daemonSetHash":{}}}`),
	)...)
}
