package plan

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"

	"github.com/flotilla-project/flotilla/core/simulation/cluster"
	"github.com/flotilla-project/flotilla/core/testing/gen"
	"github.com/flotilla-project/flotilla/core/testing/simulate"

	"github.com/flotilla-project/flotilla/statefulset/api/v1beta1"
)

// goesWith marks a claim as one that is deleted with the ordinals of the set with the UID.
func goesWith(set string) gen.ClaimOption {
	return func(c *corev1.PersistentVolumeClaim) {
		c.Annotations = map[string]string{v1beta1.DeleteWhenScaledAnnotation: set}
	}
}

// An autoscaler scales in while the pod is away: nobody is there to take the claim along.
func TestClaimsOfOrdinalsThatWereScaledInWithoutAPodAreDeleted(t *testing.T) {
	const unmarked = `PatchMetadata data-web-1 {"metadata":{"annotations":{"apps.kruise.io/delete-when-scaled":null}}}`
	for name, c := range map[string]struct {
		whenScaled string
		claim      []gen.ClaimOption
		replicas   int32
		want       []string
	}{
		"it goes":                     {"Delete", []gen.ClaimOption{goesWith("set-uid")}, 1, []string{"Delete data-web-1"}},
		"somebody made it by hand":    {"Delete", nil, 1, []string{}},
		"a former set of the name":    {"Delete", []gen.ClaimOption{goesWith("former")}, 1, []string{}},
		"the collector takes it":      {"Delete", []gen.ClaimOption{goesWith("set-uid"), ownedBy(plainRef("v1", "Pod", "web-1", "former"))}, 1, []string{}},
		"it is on its way out":        {"Delete", []gen.ClaimOption{goesWith("set-uid"), going}, 1, []string{}},
		"its ordinal runs":            {"Delete", []gen.ClaimOption{goesWith("set-uid")}, 2, []string{}},
		"claims are retained by now":  {"Retain", []gen.ClaimOption{goesWith("set-uid")}, 1, []string{unmarked}},
		"and those of others as well": {"Retain", []gen.ClaimOption{goesWith("former")}, 1, []string{}},
	} {
		t.Run(name, func(t *testing.T) {
			w := given(t, c.replicas, claimed("data"), retention("Retain", "Retain")).claim("data-web-1", c.claim...)
			if c.whenScaled == "Delete" {
				w.edited(retention("Retain", "Delete")).claim("data-web-0", goesWith("set-uid"))
			}
			w.updated(at(0))
			assert.Equal(t, c.want, w.claimActions())
		})
	}
	for name, leaves := range map[string]gen.PodOption{"unready": unready, "on its way out": terminating, "evicted": gen.Phase(corev1.PodFailed)} {
		w := given(t, 1, claimed("data"), retention("Retain", "Delete")).updated(at(0), leaves)
		assert.Equal(t, []string{`PatchMetadata data-web-0 {"metadata":{"annotations":{"apps.kruise.io/delete-when-scaled":"set-uid"}}}`}, w.claimActions(), name)
	}
	w := given(t, 1, claimed("data"), retention("Retain", "Delete")).updated(at(0))
	assert.Empty(t, w.claimActions(), "as long as the pod serves its claim is left alone")
	w = given(t, 1, claimed("data"), retention("Retain", "Delete")).claim("data-web-1", goesWith("set-uid")).updated(at(0, 1))
	assert.NotContains(t, w.claimActions(), "Delete data-web-1", "the pod takes it along")
}

// Whatever is edited first, a claim whose template was removed does not go with the set.
func TestClaimsOfRemovedTemplatesLoseTheSet(t *testing.T) {
	const disowned = `PatchMetadata log-web-0 {"metadata":{"ownerReferences":[{"$patch":"delete","uid":"set-uid"}]}}`
	for _, whenDeleted := range []string{"Delete", "Retain"} {
		w := given(t, 1, claimed("data"), retention("Retain", "Retain")).claim("log-web-0", ownedBy(setRef()))
		if whenDeleted == "Delete" {
			w.edited(retention("Delete", "Retain")).claim("data-web-0", ownedBy(setRef()))
		}
		assert.Equal(t, []string{disowned}, w.updated(at(0)).claimActions(), whenDeleted)
	}
	w := given(t, 2, claimed("data"), retention("Retain", "Retain")).updated(at(0)).claim("data-web-1", ownedBy(setRef()))
	assert.Contains(t, w.claimActions()[0], "PatchMetadata data-web-1", "nor does that of an ordinal without a pod")
	w = given(t, 1, claimed("data"), retention("Retain", "Delete")).claim("data-web-0", goesWith("set-uid")).claim("log-web-0", goesWith("set-uid")).updated(at(0))
	assert.Equal(t, []string{`PatchMetadata log-web-0 {"metadata":{"annotations":{"apps.kruise.io/delete-when-scaled":null}}}`}, w.claimActions(),
		"once it is back, its ordinal may not run any more")
}

func TestAScaleInWhileAPodIsAwayLeavesNoClaim(t *testing.T) {
	w, p := play(t, cluster.Options{Seed: 1}, 3, claimed("data", "log"), retention("Retain", "Delete"))
	simulate.Settle(t, w, p, 500)
	require.NoError(t, w.Delete(cluster.NodeActor, podOf(w, 2)))
	for podOf(w, 2) != nil {
		w.Advance(1e9)
	}
	edit(w, replicas(2))
	simulate.Settle(t, w, p, 500)
	arrived(t, w)
	assert.Len(t, cluster.List[*corev1.PersistentVolumeClaim](w.View(nil)), 4)
}
