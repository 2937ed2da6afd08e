package revision

import (
	"cmp"
	"encoding/json"
	"slices"
	"strconv"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/flotilla-project/flotilla/core/contract"
	"github.com/flotilla-project/flotilla/core/hash"
)

// claim is what of a claim template the hash covers, in the serialisation of Kubernetes' libraries
// before 1.34, which always wrote a creation time.
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

// presentClaimsHash is what ClaimsHash would be with the serialisation of today's libraries.
func presentClaimsHash(claims []corev1.PersistentVolumeClaim) (string, error) {
	if len(claims) == 0 {
		return "", nil
	}
	list := sortedByName(claims)
	for i := range list {
		reduced := corev1.PersistentVolumeClaim{Spec: list[i].Spec}
		reduced.Name = list[i].Name
		list[i] = reduced
	}
	return hashJSON(list)
}

// ClaimsDiffer says whether two revisions were made with different claim templates. A revision
// without the annotation differs from none. The claims are the workload's present ones: hashes of
// theirs are equal in whichever serialisation they were written.
func ClaimsDiffer(a, b *appsv1.ControllerRevision, claims []corev1.PersistentVolumeClaim) (bool, error) {
	first, firstSet := a.Annotations[contract.VolumeClaimTemplateHashAnnotation]
	second, secondSet := b.Annotations[contract.VolumeClaimTemplateHashAnnotation]
	if !firstSet || !secondSet || first == second {
		return false, nil
	}
	legacy, err := ClaimsHash(claims)
	if err != nil {
		return false, err
	}
	present, err := presentClaimsHash(claims)
	if err != nil {
		return false, err
	}
	isOfClaims := func(text string) bool { return text == legacy || text == present }
	return !isOfClaims(first) || !isOfClaims(second), nil
}

func sortedByName(claims []corev1.PersistentVolumeClaim) []corev1.PersistentVolumeClaim {
	list := make([]corev1.PersistentVolumeClaim, len(claims))
	for i := range claims {
		list[i] = *claims[i].DeepCopy()
		defaultClaim(&list[i].Spec)
	}
	slices.SortStableFunc(list, func(a, b corev1.PersistentVolumeClaim) int { return cmp.Compare(a.Name, b.Name) })
	return list
}

func hashJSON(x any) (string, error) {
	text, err := json.Marshal(x)
	if err != nil {
		return "", err
	}
	return strconv.FormatUint(uint64(hash.Deep(text)), 10), nil
}
