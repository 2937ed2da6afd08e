package admission

import (
	"testing"

	"github.com/flotilla-project/flotilla/core/testing/fuzz"
)

func FuzzAdmission(f *testing.F) {
	w := NewWebhook()
	fuzz.Admission{
		Mutating: w.Mutating().Handler, Validating: w.Validating().Handler, Convert: w.Convert,
		CRD: fuzz.ReadCRD(f, "../../../config/crd/imagepulljobs.yaml"),
	}.Run(f, fuzz.Documents(f, `
apiVersion: apps.kruise.io/v1beta1
kind: ImagePullJob
metadata: {name: pull, namespace: shop}
spec:
  image: nginx:1.25
  parallelism: 50%
  selector: {names: [node-1]}
  pullSecrets: [pull]
  pullPolicy: {backoffLimit: 3, timeoutSeconds: 60}
  completionPolicy: {type: Always, activeDeadlineSeconds: 60}
`)...)
}
