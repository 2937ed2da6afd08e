package revision

import (
	"cmp"
	"encoding/json"
	"slices"
	"strconv"

	corev1 "k8s.io/api/core/v1"

	"github.com/flotilla-project/flotilla/core/pods/hash"
	"github.com/flotilla-project/flotilla/core/pods/podspec"
)

// claim is the part of a claim template that the hash covers, in the serialisation of Kubernetes' libraries before
// 1.34, which always wrote a creation time.
type claim struct {
	Metadata claimMetadata                    `json:"metadata"`
	Spec     corev1.PersistentVolumeClaimSpec `json:"spec"`
	Status   struct{}                         `json:"status"`
}

type claimMetadata struct {
	Name              string `json:"name,omitempty"`
	CreationTimestamp any    `json:"creationTimestamp"`
}

// ClaimsHash is the value of annotation kruise.io/cloneset-volumeclaimtemplate-hash for claim
// templates: a hash of their names and defaulted specs that does not depend on their order; empty
// when there are none.
func ClaimsHash(claims []corev1.PersistentVolumeClaim) (string, error) {
	if len(claims) == 0 {
		return "", nil
	}
	list := make([]claim, 0, len(claims))
	for _, c := range sortedByName(claims) {
		list = append(list, claim{Metadata: claimMetadata{Name: c.Name}, Spec: c.Spec})
	}
	return hashJSON(list)
}

func sortedByName(claims []corev1.PersistentVolumeClaim) []corev1.PersistentVolumeClaim {
	list := make([]corev1.PersistentVolumeClaim, len(claims))
	for i := range claims {
		list[i] = *claims[i].DeepCopy()
		podspec.DefaultClaim(&list[i].Spec)
	}
	slices.SortStableFunc(list, func(a, b corev1.PersistentVolumeClaim) int { return cmp.Compare(a.Name, b.Name) })
	return list
}

func hashJSON(x any) (string, error) {
	text, err := json.Marshal(x)
	if err != nil {
		return "", err
	}
	return strconv.FormatUint(uint64(hash.Object(text)), 10), nil
}
