package plan

import (
	"testing"

	"github.com/stretchr/testify/assert"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/flotilla-project/flotilla/core/contract"
	"github.com/flotilla-project/flotilla/core/plan/action"
	"github.com/flotilla-project/flotilla/core/simulation/cluster"
	"github.com/flotilla-project/flotilla/core/testing/simulate"
	"github.com/flotilla-project/flotilla/core/workloads/revision"

	"github.com/flotilla-project/flotilla/cloneset/api/v1beta1"
)

// sized gives the claim template of the name another size.
func sized(name, size string) setOption {
	return func(s *v1beta1.CloneSet) {
		for i := range s.Spec.VolumeClaimTemplates {
			if c := &s.Spec.VolumeClaimTemplates[i]; c.Name == name {
				c.Spec.Resources.Requests = corev1.ResourceList{corev1.ResourceStorage: resource.MustParse(size)}
			}
		}
	}
}

// claimSizes counts the claims of each size that active pods have, by volume: "a 1Gi".
func claimSizes(w *simulate.World) map[string]int {
	byName := map[string]string{}
	for _, claim := range cluster.List[*corev1.PersistentVolumeClaim](w.View(nil)) {
		byName[claim.Name] = claim.Spec.Resources.Requests.Storage().String()
	}
	count := map[string]int{}
	for _, o := range activePods(w) {
		for _, volume := range o.Spec.Volumes {
			if c := volume.PersistentVolumeClaim; c != nil {
				count[volume.Name+" "+byName[c.ClaimName]]++
			}
		}
	}
	return count
}

// With feature gate RecreatePodWhenChangeVCTInCloneSetGate, claim templates that have changed since the pods'
// revision was made turn the next update in place into a recreation; without it, they never do.
func TestChangedClaimTemplates(t *testing.T) {
	inPlaceOnly := policy(v1beta1.InPlaceOnly)
	type row struct {
		name            string
		edit            []setOption
		recreated       bool
		withGate, plain map[string]int
	}
	rows := []row{
		{"an image and a claim template", []setOption{image("app:2"), sized("a", "2Gi")}, true, map[string]int{"a 2Gi": 4, "b 1Gi": 4}, map[string]int{"a 1Gi": 4, "b 1Gi": 4}},
		{"a claim template alone", []setOption{sized("b", "2Gi")}, false, map[string]int{"a 2Gi": 4, "b 1Gi": 4}, map[string]int{"a 1Gi": 4, "b 1Gi": 4}},
		{"an image afterwards", []setOption{image("app:3")}, true, map[string]int{"a 2Gi": 4, "b 2Gi": 4}, map[string]int{"a 1Gi": 4, "b 1Gi": 4}},
		{"back to the image before", []setOption{image("app:2")}, false, map[string]int{"a 2Gi": 4, "b 2Gi": 4}, map[string]int{"a 1Gi": 4, "b 1Gi": 4}},
		{"an image in place only", []setOption{image("app:4"), inPlaceOnly}, false, map[string]int{"a 2Gi": 4, "b 2Gi": 4}, map[string]int{"a 1Gi": 4, "b 1Gi": 4}},
		{"both in place only", []setOption{image("app:5"), sized("a", "3Gi"), sized("b", "3Gi")}, false, map[string]int{"a 2Gi": 4, "b 2Gi": 4}, map[string]int{"a 1Gi": 4, "b 1Gi": 4}},
	}
	for name, enabled := range map[string]bool{"with the feature gate": true, "without it": false} {
		t.Run(name, func(t *testing.T) {
			w, p := play(t, cluster.Options{Seed: 1}, 4, policy(v1beta1.InPlaceIfPossible), claimed("a", "b"), maxUnavailable("2"))
			p.featureGates.RecreateOnClaimChange = enabled
			simulate.Settle(t, w, p, 500)
			for _, r := range rows {
				before := identities(w)
				edit(w, r.edit...)
				simulate.Settle(t, w, p, 500)
				arrived(t, w)
				want := r.plain
				if enabled {
					want = r.withGate
				}
				assert.Equal(t, want, claimSizes(w), r.name)
				if enabled && r.recreated {
					assert.NotEqual(t, before, identities(w), r.name)
				} else {
					assert.Equal(t, before, identities(w), r.name)
				}
			}
		})
	}
}

// A revision that is wanted again is compared with the hash that it is about to get.
func TestClaimsOfARevisionThatIsWantedAgain(t *testing.T) {
	tests := map[string]struct {
		stored, present string // on the revision that is wanted again, and of the claim templates
		want            outcome
	}{
		"are those of the pods, as it says":         {"pods", "pods", outcome{updated: 1}},
		"are those of the pods, unlike it says":     {"former", "pods", outcome{updated: 1}},
		"are others by now":                         {"pods", "later", outcome{deleteOld: 1}},
		"are others than it says and the pods have": {"former", "later", outcome{deleteOld: 1}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			w := given(t, 2, policy(v1beta1.InPlaceIfPossible)).old(2)
			w.featureGates.RecreateOnClaimChange = true
			for i, hash := range []string{"pods", tt.stored} {
				w.revisions[i].Annotations = map[string]string{contract.VolumeClaimTemplateHashAnnotation: hash}
			}
			s := w.snapshot()
			s.Chosen = revision.Choice{
				Update: w.revisions[1], Current: w.revisions[0], Renumber: true, Number: 3, ClaimsHash: tt.present, SetClaimsHash: tt.stored != tt.present,
			}
			todo := Compute(s)
			assert.Equal(t, tt.want, outcome{updated: todo.Count(action.UpdateInPlace), deleteOld: todo.Count(action.Delete)}, todo.String())
		})
	}
}
