package plan

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	corev1 "k8s.io/api/core/v1"

	"github.com/flotilla-project/flotilla/core/workloads/revision"
)

// givenRollback is a set of five nodes that reverts with partition 3. Its canary at app:2 is bad, and the user has gone back
// to app:1, which all nodes had before.
func givenRollback(t *testing.T, options ...setOption) *world {
	t.Helper()
	w := given(t, 5, append([]setOption{reverting, partition("3")}, options...)...)
	stable, canary := w.revisions[0], w.revisions[1]
	stable.Revision = 3
	image("app:1")(w.set)
	w.revisions[0], w.revisions[1] = canary, stable
	w.set.Status.CurrentRevision = revision.Hash(stable)
	return w
}

// A rollback made app:1 the newest revision, so that the one before it was the canary.
func TestARollbackReachesAllNodes(t *testing.T) {
	assert.Equal(t, []string{"delete n5"}, givenRollback(t).updated("n1 n2 n3").old("n4 n5").did())
	assert.Equal(t, []string{"delete n5", "delete n4"}, givenRollback(t).updated("n1 n2 n3").old("n4 n5", down).did())
	assert.Equal(t, []string{"update n5"}, givenRollback(t, inPlace).updated("n1 n2 n3").old("n4 n5").did())
	assert.Equal(t, []string{"create n5"}, givenRollback(t, maxSurge("1")).updated("n1 n2 n3").old("n4 n5").did())
	assert.Equal(t, []string{"delete n5"}, givenRollback(t, onNodes("n1")).updated("n1 n2 n3").old("n4 n5").did())
	assert.Equal(t, []string{"create n1"}, givenRollback(t).updated("n2 n3").old("n4 n5").did(), "a pod that was lost")
	assert.Empty(t, givenRollback(t).updated("n1 n2 n3 n4 n5").did())
	assert.Empty(t, givenRollback(t, pausing(true)).updated("n1 n2 n3").old("n4 n5").did())

	w := givenRollback(t, partitionedScaling).updated("n4").old("n5")
	w.had = map[string]bool{"n4": true, "n5": true}
	assert.Equal(t, []string{"delete n5"}, w.did(), "nodes that wait for their first pod do not count")
}

// The canary is given up for a third revision, of which no node has a pod yet.
func TestNodesReturnToTheRevisionThatAllHad(t *testing.T) {
	w := given(t, 5, reverting, partition("5")).old("n2 n3")
	template := w.set.Spec.Template.DeepCopy()
	template.Spec.Containers[0].Image = "app:canary"
	canary := w.revision(*template, 3)
	w.revisions[1].Revision = 4
	w.revisions = append(w.revisions, canary)
	w.add(canary, "n4 n5", nil)
	assert.Equal(t, []string{"create n1"}, w.did(), "the newest revision but one, as far as is known")
	w.set.Status.CurrentRevision = revision.Hash(w.revisions[0])
	assert.Equal(t, []string{"create n1 old"}, w.did())
	w.set.Status.CurrentRevision = "forgotten"
	assert.Equal(t, []string{"create n1"}, w.did())
}

func TestTheCurrentRevisionIsTheLastThatAllNodesHad(t *testing.T) {
	const before = 2
	cases := []struct {
		name  string
		given *world
		want  int // index of the revision
	}{
		{"all are updated", given(t, 2).updated("n1 n2"), 1},
		{"a partition keeps nodes back, though these are gone", given(t, 2, partition("1")).updated("n1 n2"), before},
		{"a selector does", given(t, 2, onNodes("n1", "n2")).updated("n1 n2"), before},
		{"all are at another one", given(t, 2).old("n1 n2"), before},
		{"some are", given(t, 2).old("n1").updated("n2"), before},
		{"one is not available", given(t, 2).updated("n1").updated("n2", down), before},
		{"one is too young", given(t, 2, minReady(10)).updated("n1").updated("n2", young), before},
		{"one has no pod", given(t, 2).updated("n1"), before},
		{"one has an old pod, too", given(t, 1, maxSurge("1")).updated("n1").old("n1", terminating), before},
		{"one that gets no new pod has an old one", given(t, 2).node("n2", tainted(corev1.TaintEffectNoSchedule)).updated("n1").old("n2"), before},
		{"one that has none says nothing", given(t, 2).node("n2", tainted(corev1.TaintEffectNoSchedule)).updated("n1"), 1},
		{"a node that is not Ready says nothing", given(t, 2).node("n2", notReady(time.Hour)).updated("n1").old("n2", down), 1},
		{"no nodes", given(t, 0), before},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			w := c.given
			template := w.set.Spec.Template.DeepCopy()
			template.Spec.Containers[0].Image = "app:0"
			w.revisions = append(w.revisions, w.revision(*template, 0))
			w.set.Status.CurrentRevision = revision.Hash(w.revisions[before])
			assert.Equal(t, revision.Hash(w.revisions[c.want]), w.status().CurrentRevision)
		})
	}
	w := given(t, 2, partition("1")).old("n1 n2")
	assert.Equal(t, revision.Hash(w.revisions[0]), w.status().CurrentRevision, "a set of an earlier operator, in the pass of an edit")
	w.set.Status.CurrentRevision = "forgotten"
	assert.Equal(t, revision.Hash(w.revisions[0]), w.status().CurrentRevision)
	assert.Empty(t, given(t, 2).old("n1").updated("n2").status().CurrentRevision)
}

// The first revision counts from the begin: the second one may come before all nodes have been seen with a pod that is
// available, or before the status of that pass is stored.
func TestTheFirstRevisionIsCurrentFromTheBegin(t *testing.T) {
	w := given(t, 2, reverting, partition("2"))
	first := revision.Hash(w.revisions[1])
	w.revisions[0] = w.revisions[1]
	assert.Equal(t, first, w.status().CurrentRevision, "no pod is there yet")
	assert.Equal(t, first, w.updated("n1", down).status().CurrentRevision)
	w.set.Status.CurrentRevision = "forgotten"
	assert.Equal(t, first, w.status().CurrentRevision)
}

// Most of the nodes that the partition keeps back are lost, and then removed: the canary does not become what the others
// return to.
func TestNodesThatAreLostMakeNoCanaryCurrent(t *testing.T) {
	w := given(t, 4, reverting, partition("3")).updated("n4")
	w.set.Status.CurrentRevision = revision.Hash(w.revisions[0])
	for _, lost := range []string{"n1", "n2", "n3"} {
		w.node(lost, notReady(time.Minute)).old(lost, down)
	}
	assert.Equal(t, revision.Hash(w.revisions[0]), w.status().CurrentRevision)
	w.pods = w.pods[:1]
	w.gone("n1", "n2", "n3").node("n5")
	assert.Equal(t, revision.Hash(w.revisions[0]), w.status().CurrentRevision)
	assert.Equal(t, []string{"create n5 old"}, w.did())
}
