package admission

import (
	"testing"

	"github.com/flotilla-project/flotilla/core/testing/fuzz"
)

func FuzzAdmission(f *testing.F) {
	w := NewWebhook()
	fuzz.Admission{
		Mutating: w.Mutating().Handler, Validating: w.Validating().Handler, Convert: w.Convert,
		CRD: fuzz.ReadCRD(f, "../../../config/crd/imagelistpulljobs.yaml"),
	}.Run(f, fuzz.Documents(f, `
apiVersion: apps.kruise.io/v1beta1
kind: ImageListPullJob
metadata: {name: pull, namespace: shop}
spec:
  images: [nginx:1.25, busybox]
  parallelism: 2
  podSelector: {matchLabels: {app: web}}
  completionPolicy: {type: Never}
`)...)
}
