package conversion

import (
	"testing"

	"github.com/flotilla-project/flotilla/core/operator/conversion"
	"github.com/flotilla-project/flotilla/core/testing/fuzz"
)

// oneTemplate leaves a job one template, the one that counts as newer in v1alpha1: validation refuses two.
func oneTemplate(object fuzz.Object) {
	if isReplaced(object) {
		delete(conversion.Member(object, "spec", "template"), imageListTemplate)
	}
}

func FuzzConvertAdvancedCronJob(f *testing.F) {
	fuzz.Conversion{Convert: Convert, CRD: fuzz.ReadCRD(f, "../../config/crd/advancedcronjobs.yaml"), Normal: oneTemplate}.Run(f, fuzz.Documents(f, `
apiVersion: apps.kruise.io/v1beta1
kind: AdvancedCronJob
metadata: {name: cron, namespace: shop}
spec:
  schedule: "@daily"
  template: {imageListPullJobTemplate: {spec: {images: [nginx], completionPolicy: {type: Always}}}}
---
apiVersion: apps.kruise.io/v1beta1
kind: AdvancedCronJob
metadata: {name: cron, namespace: shop}
spec:
  schedule: "@daily"
  template: {jobTemplate: {spec: {template: {spec: {restartPolicy: Never, containers: [{name: main, image: busybox}]}}}}}
`)...)
}
