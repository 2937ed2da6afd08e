package conversion

import (
	"testing"

	"github.com/flotilla-project/flotilla/core/testing/fuzz"
)

func FuzzConvert(f *testing.F) {
	fuzz.Conversion{Convert: Convert, CRD: fuzz.ReadCRD(f, "../../config/crd/podunavailablebudgets.yaml")}.Run(f, fuzz.Documents(f, `
apiVersion: policy.kruise.io/v1beta1
kind: PodUnavailableBudget
metadata: {name: web, namespace: shop}
spec:
  selector: {matchLabels: {app: web}}
  maxUnavailable: 50%
  protectOperations: [DELETE, EVICT]
  protectTotalReplicas: 7
  ignoredPodSelector: {matchLabels: {role: canary}}
status: {unavailableAllowed: 1, currentAvailable: 3, desiredAvailable: 2, totalReplicas: 4, disruptedPods: {web-0: "2026-01-02T03:04:05Z"}, unavailablePods: {web-1: "2026-01-02T03:04:05Z"}}
`)...)
}
