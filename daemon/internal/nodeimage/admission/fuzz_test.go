package admission

import (
	"testing"

	clocktesting "k8s.io/utils/clock/testing"

	"github.com/flotilla-project/flotilla/core/testing/fuzz"
	"github.com/flotilla-project/flotilla/core/testing/gen"

	"github.com/flotilla-project/flotilla/daemon/internal/conversion"
)

func FuzzAdmission(f *testing.F) {
	w := Webhook{Clock: clocktesting.NewFakePassiveClock(gen.Epoch())}
	fuzz.Admission{
		Mutating: w.Mutating().Handler, Validating: w.Validating().Handler, Convert: conversion.Convert,
		CRD: fuzz.ReadCRD(f, "../../../config/crd/nodeimages.yaml"),
	}.Run(f, fuzz.Documents(f, `
apiVersion: apps.kruise.io/v1beta1
kind: NodeImage
metadata: {name: node-1}
spec:
  images:
    nginx:
      pullSecrets: [{namespace: shop, name: pull}]
      tags:
      - tag: "1.25"
        version: 1
        createdAt: "2026-01-02T03:04:05Z"
        pullPolicy: {backoffLimit: 3, timeoutSeconds: 60, activeDeadlineSeconds: 90, ttlSecondsAfterFinished: 5}
        ownerReferences: [{apiVersion: apps.kruise.io/v1beta1, kind: ImagePullJob, name: pull, uid: u}]
`)...)
}
