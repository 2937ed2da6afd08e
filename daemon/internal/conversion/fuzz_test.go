package conversion

import (
	"testing"

	"github.com/flotilla-project/flotilla/core/testing/fuzz"
)

func FuzzConvertNodeImage(f *testing.F) {
	fuzz.Conversion{Convert: Convert, CRD: fuzz.ReadCRD(f, "../../config/crd/nodeimages.yaml"), Normal: fuzz.WithoutZeros}.Run(f, fuzz.Documents(f, `
apiVersion: apps.kruise.io/v1beta1
kind: NodeImage
metadata: {name: node-1}
spec:
  images:
    nginx:
      pullSecrets: [{namespace: shop, name: pull, mode: Batch}, {namespace: shop, name: other}]
      tags: [{tag: "1.25", version: 1, createdAt: "2026-01-02T03:04:05Z", pullPolicy: {backoffLimit: 3}}]
`)...)
}

func FuzzConvertContainerRecreateRequest(f *testing.F) {
	fuzz.Conversion{Convert: Convert, CRD: fuzz.ReadCRD(f, "../../config/crd/containerrecreaterequests.yaml"), Normal: fuzz.WithoutZeros}.Run(f, fuzz.Read(f, "../../config/samples/*.yaml")...)
}
