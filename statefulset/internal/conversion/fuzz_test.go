package conversion

import (
	"testing"

	"github.com/flotilla-project/flotilla/core/testing/fuzz"
)

func FuzzConvert(f *testing.F) {
	fuzz.Conversion{Convert: Convert, CRD: fuzz.ReadCRD(f, "../../config/crd/statefulsets.yaml")}.Run(f, append(
		fuzz.Read(f, "../../config/samples/*.yaml"),
		[]byte(`{"kind":"StatefulSet","apiVersion":"apps.kruise.io/v1beta1","spec":{"reserveOrdinals":[1,"2-3"]},"metadata":{"annotations":{"apps.kruise.io/v1beta1-fields":"{"}}}`),
		[]byte(`{"kind":"StatefulSet","apiVersion":"apps.kruise.io/v1alpha1","spec":null,"metadata":{"annotations":{"apps.kruise.io/v1beta1-fields":"{\"spec\":{\"ordinals\":null}}"}}}`),
	)...)
}
