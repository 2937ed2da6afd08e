package revision

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/flotilla-project/flotilla/core/contract"
	"github.com/flotilla-project/flotilla/core/testing/gen"
)

var cloneSet = schema.GroupVersionKind{Group: contract.AppsGroup, Version: "v1beta1", Kind: "CloneSet"}

func web() *metav1.ObjectMeta {
	return &metav1.ObjectMeta{Namespace: gen.Namespace, Name: "web", UID: gen.UID("web")}
}

func image(name string) *corev1.PodTemplateSpec {
	template := gen.Template(gen.Label("app", "web"), gen.Image("main", name))
	return &template
}

func revisionOf(t *testing.T, template *corev1.PodTemplateSpec, number int64) *appsv1.ControllerRevision {
	t.Helper()
	r, err := New(web(), cloneSet, template, number, 0)
	require.NoError(t, err)
	return r
}

func choose(t *testing.T, in Input) Choice {
	t.Helper()
	in.Owner, in.Kind = web(), cloneSet
	choice, err := Choose(in)
	require.NoError(t, err)
	return choice
}

func TestFirstRevision(t *testing.T) {
	hash := "123"
	choice := choose(t, Input{Template: image("app:1"), ClaimsHash: &hash})
	assert.True(t, choice.Create)
	assert.Same(t, choice.Update, choice.Current)
	assert.Equal(t, int64(1), choice.Update.Revision)
	assert.Equal(t, "123", choice.Update.Annotations[contract.VolumeClaimTemplateHashAnnotation])
	assert.Equal(t, map[string]string{"app": "web", contract.RevisionHashLabel: Hash(choice.Update)}, choice.Update.Labels)
	assert.True(t, strings.HasPrefix(choice.Update.Name, "web-"))
	assert.True(t, *choice.Update.OwnerReferences[0].BlockOwnerDeletion)
}

func TestRevisionOfAKindWithoutClaimsAndWithItsOwnLabel(t *testing.T) {
	r := choose(t, Input{Template: image("app:1"), HashLabel: contract.RevisionLabel}).Update
	assert.Empty(t, r.Annotations)
	assert.Equal(t, map[string]string{"app": "web", contract.RevisionLabel: Hash(r)}, r.Labels)
}

func TestNewestEqualRevisionKeepsItsClaimsHash(t *testing.T) {
	newest, hash := revisionOf(t, image("app:2"), 7), "changed"
	choice := choose(t, Input{Template: image("app:2"), ClaimsHash: &hash, Owned: []*appsv1.ControllerRevision{newest, revisionOf(t, image("app:1"), 3)}})
	assert.Same(t, newest, choice.Update)
	assert.Equal(t, int64(7), choice.Number)
	assert.False(t, choice.Create || choice.Renumber || choice.SetClaimsHash)
}

func TestOlderEqualRevisionIsRaisedAndGetsTheClaimsHash(t *testing.T) {
	recorded, other := "1", "2"
	for name, c := range map[string]struct {
		present *string
		want    bool
	}{"changed": {&other, true}, "unchanged": {&recorded, false}, "not recorded": {nil, false}} {
		t.Run(name, func(t *testing.T) {
			oldest, older, newest := revisionOf(t, image("app:1"), 1), revisionOf(t, image("app:1"), 2), revisionOf(t, image("app:2"), 5)
			metav1.SetMetaDataAnnotation(&older.ObjectMeta, contract.VolumeClaimTemplateHashAnnotation, recorded)
			choice := choose(t, Input{Template: image("app:1"), ClaimsHash: c.present, Owned: []*appsv1.ControllerRevision{newest, older, oldest}, Current: newest.Name})
			assert.Same(t, older, choice.Update, "the newest of the equal ones")
			assert.Same(t, newest, choice.Current)
			assert.True(t, choice.Renumber)
			assert.False(t, choice.Create)
			assert.Equal(t, int64(6), choice.Number)
			assert.Equal(t, int64(2), older.Revision, "the stored object is untouched")
			assert.Equal(t, c.want, choice.SetClaimsHash)
		})
	}
}

func TestRollbackToARevisionWithoutClaimsHashRecordsEvenNone(t *testing.T) {
	none := ""
	older, newest := revisionOf(t, image("app:1"), 1), revisionOf(t, image("app:2"), 2)
	choice := choose(t, Input{Template: image("app:1"), ClaimsHash: &none, Owned: []*appsv1.ControllerRevision{older, newest}})
	assert.True(t, choice.SetClaimsHash)
}

// An orphan is chosen where no owned revision would be, and named by the status as any other.
func TestOrphansAreChosenAfterOwnedRevisions(t *testing.T) {
	mine, other, equal := revisionOf(t, image("app:2"), 3), revisionOf(t, image("app:9"), 8), revisionOf(t, image("app:2"), 9)
	equal.Name = "former-xyz"
	orphans := []*appsv1.ControllerRevision{equal, other}
	choice := choose(t, Input{Template: image("app:2"), Owned: []*appsv1.ControllerRevision{mine}, Orphans: orphans})
	assert.Same(t, mine, choice.Update)
	assert.False(t, choice.Renumber, "numbers of orphans are not the set's")
	choice = choose(t, Input{Template: image("app:2"), Orphans: orphans, Current: other.Name})
	assert.Same(t, equal, choice.Update)
	assert.Same(t, other, choice.Current)
	assert.False(t, choice.Create || choice.Renumber)
	choice = choose(t, Input{Template: image("app:9"), Orphans: orphans})
	assert.Same(t, other, choice.Update)
	assert.True(t, choice.Renumber)
	assert.Equal(t, int64(10), choice.Number)
	choice = choose(t, Input{Template: image("app:1"), Owned: []*appsv1.ControllerRevision{mine}, Orphans: orphans})
	assert.True(t, choice.Create)
	assert.Equal(t, int64(10), choice.Number)
}

func TestRevisionsOfOneNumberAreToldApartByAge(t *testing.T) {
	older, newer := revisionOf(t, image("app:1"), 2), revisionOf(t, image("app:2"), 2)
	older.CreationTimestamp = metav1.NewTime(gen.Epoch())
	newer.CreationTimestamp = metav1.NewTime(gen.Epoch().Add(time.Second))
	owned := []*appsv1.ControllerRevision{newer, older}
	assert.False(t, choose(t, Input{Template: image("app:2"), Owned: owned}).Renumber)
	choice := choose(t, Input{Template: image("app:1"), Owned: owned})
	assert.True(t, choice.Renumber)
	assert.Equal(t, int64(3), choice.Number)
}

func TestTakenNames(t *testing.T) {
	wanted := revisionOf(t, image("app:2"), 1)
	taken := func(change func(r *appsv1.ControllerRevision)) *appsv1.ControllerRevision {
		r := wanted.DeepCopy()
		change(r)
		return r
	}
	cases := []struct {
		name      string
		taken     *appsv1.ControllerRevision
		use       bool
		collision int32
	}{
		{"equal and ours", wanted, true, 0},
		{"equal and an orphan", taken(func(r *appsv1.ControllerRevision) { r.OwnerReferences = nil }), true, 0},
		{"equal and another's", taken(func(r *appsv1.ControllerRevision) { r.OwnerReferences[0].UID = "other" }), false, 1},
		{"other data", taken(func(r *appsv1.ControllerRevision) { r.Data = revisionOf(t, image("app:9"), 1).Data }), false, 1},
		{"unreadable data", taken(func(r *appsv1.ControllerRevision) { r.Data.Raw = []byte(`"x"`) }), false, 1},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			choice := choose(t, Input{
				Template: image("app:2"),
				Owned:    []*appsv1.ControllerRevision{revisionOf(t, image("app:1"), 4)},
				Lookup: func(name string) *appsv1.ControllerRevision {
					return map[string]*appsv1.ControllerRevision{c.taken.Name: c.taken}[name]
				},
			})
			assert.Equal(t, c.use, !choice.Create)
			assert.Equal(t, c.collision, choice.CollisionCount)
			assert.Equal(t, int64(5), choice.Number)
			if c.use {
				assert.Same(t, c.taken, choice.Update)
				assert.True(t, choice.Renumber, "it is older than a revision that is owned")
				return
			}
			again, err := New(web(), cloneSet, image("app:2"), 5, 1)
			require.NoError(t, err)
			assert.Equal(t, again, choice.Update)
			assert.NotEqual(t, wanted.Name, choice.Update.Name)
		})
	}
}

func TestCollisionsAreCountedOn(t *testing.T) {
	choice := choose(t, Input{Template: image("app:1"), CollisionCount: 3, Lookup: func(name string) *appsv1.ControllerRevision {
		for _, collision := range []int32{3, 4} {
			r, err := New(web(), cloneSet, image("app:1"), 1, collision)
			require.NoError(t, err)
			if r.Name == name {
				r.OwnerReferences[0].UID = "other"
				return r
			}
		}
		return nil
	}})
	assert.True(t, choice.Create)
	assert.Equal(t, int32(5), choice.CollisionCount)
}

func TestUnreadableRevisionsBlockNothing(t *testing.T) {
	broken := revisionOf(t, image("app:1"), 9)
	broken.Data.Raw = []byte(`{"spec":{}}`)
	broken.Name = "web-broken"
	choice := choose(t, Input{Template: image("app:1"), Owned: []*appsv1.ControllerRevision{broken}, Current: "web-broken"})
	assert.True(t, choice.Create)
	assert.Equal(t, int64(10), choice.Number)
	assert.Same(t, broken, choice.Current)
}

func TestCurrentIsKnownByItsShortHash(t *testing.T) {
	first, second := revisionOf(t, image("app:1"), 1), revisionOf(t, image("app:2"), 2)
	owned := []*appsv1.ControllerRevision{first, second}
	for current, want := range map[string]*appsv1.ControllerRevision{first.Name: first, Hash(first): first, "web-gone": second, "": second} {
		assert.Same(t, want, choose(t, Input{Template: image("app:2"), Owned: owned, Current: current}).Current, current)
	}
}

func TestTheClustersOwnDefaultsMayDecide(t *testing.T) {
	owned := []*appsv1.ControllerRevision{revisionOf(t, image("app:1"), 1)}
	in := Input{Template: image("app:2"), Owned: owned, Same: func(stored, present *corev1.PodTemplateSpec) bool {
		return stored.Spec.Containers[0].Image == "app:1" && present.Spec.Containers[0].Image == "app:2"
	}}
	assert.False(t, choose(t, in).Create)
}

func TestTruncate(t *testing.T) {
	var owned []*appsv1.ControllerRevision
	byNumber := map[int64]*appsv1.ControllerRevision{}
	for _, number := range []int64{5, 1, 4, 2, 3} {
		r := revisionOf(t, image("app:"+string(rune('0'+number))), number)
		owned, byNumber[number] = append(owned, r), r
	}
	deleted := byNumber[1].DeepCopy()
	deleted.Name, deleted.DeletionTimestamp = "web-deleted", &metav1.Time{Time: gen.Epoch()}
	owned = append(owned, deleted)
	live := map[string]bool{Hash(byNumber[5]): true, Hash(byNumber[2]): true}
	for limit, want := range map[int32][]int64{10: nil, 3: nil, 2: {1}, 1: {1, 3}, 0: {1, 3, 4}, -1: {1, 3, 4}} {
		var got []int64
		for _, r := range beyondLimit(owned, live, limit) {
			got = append(got, r.Revision)
		}
		assert.Equal(t, want, got, "limit %d", limit)
	}
}
