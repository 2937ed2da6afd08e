package conversion

import (
	"testing"

	"github.com/flotilla-project/flotilla/core/testing/fuzz"
)

func FuzzConvert(f *testing.F) {
	fuzz.Conversion{Convert: Convert, CRD: fuzz.ReadCRD(f, "../../config/crd/clonesets.yaml"), Settles: true}.Run(f, append(
		fuzz.Read(f, "../../config/samples/*.yaml"),
		[]byte(`{"kind":"CloneSet","apiVersion":"apps.kruise.io/v1beta1","spec":{"updateStrategy":{"type":"OnDelete","rollingUpdate":{"podUpdatePolicy":"InPlaceOnly"}}}}`),
		[]byte(`{"kind":"CloneSet","apiVersion":"apps.kruise.io/v1beta1","spec":{"updateStrategy":{"rollingUpdate":{"inPlaceUpdateStrategy":{"gracePeriodSeconds":0,"imagePreDownloadTimeoutSeconds":9}}}}}`),
		[]byte(`{"kind":"CloneSet","apiVersion":"apps.kruise.io/v1alpha1","spec":null,"metadata":{"annotations":{"apps.kruise.io/v1beta1-record":"{}"}}}`),
	)...)
}
