package admission

import (
	"testing"

	"github.com/flotilla-project/flotilla/core/testing/fuzz"
	"github.com/flotilla-project/flotilla/core/testing/fuzz/templates"
)

func FuzzAdmission(f *testing.F) {
	w := NewWebhook(templates.Validator())
	fuzz.Admission{
		Mutating: w.Mutating().Handler, Validating: w.Validating().Handler, Convert: w.Convert,
		CRD: fuzz.ReadCRD(f, "../../../config/crd/broadcastjobs.yaml"),
	}.Run(f, fuzz.Documents(f, `
apiVersion: apps.kruise.io/v1beta1
kind: BroadcastJob
metadata: {name: each, namespace: shop}
spec:
  parallelism: 50%
  completionPolicy: {type: Always, activeDeadlineSeconds: 60, ttlSecondsAfterFinished: 5}
  failurePolicy: {type: FailFast, restartLimit: 3}
  template: {spec: {restartPolicy: Never, containers: [{name: main, image: busybox}]}}
`)...)
}
