package model

import (
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/flotilla-project/flotilla/core/contract"
	"github.com/flotilla-project/flotilla/core/testing/gen"
	"github.com/flotilla-project/flotilla/core/workloads/predownload"
	"github.com/flotilla-project/flotilla/core/workloads/revision"
)

func named(name string) *appsv1.ControllerRevision {
	return &appsv1.ControllerRevision{ObjectMeta: metav1.ObjectMeta{Name: name}}
}

// given is a ReplicaSet, which stands for any workload, on its way from revision web-a to web-b. A pull job of an
// older update is there.
func given(choice revision.Choice) Snapshot[*appsv1.ReplicaSet] {
	old := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Name: "older", Labels: map[string]string{contract.RevisionHashLabel: "x"}}}
	old.SetGroupVersionKind(contract.ImagePullJobGVK("v1beta1"))
	return Snapshot[*appsv1.ReplicaSet]{
		Set: &appsv1.ReplicaSet{ObjectMeta: metav1.ObjectMeta{Name: "web", Namespace: gen.Namespace}}, Chosen: choice, Now: gen.Epoch(),
		PullJobs: predownload.Jobs{Version: "v1beta1", Owned: []*predownload.Job{{PartialObjectMetadata: old}}},
	}
}

func TestChosenRevisionsAndThoseOfPodsLive(t *testing.T) {
	s := given(revision.Choice{Current: named("web-a"), Update: named("web-b")})
	assert.Equal(t, map[string]bool{"a": true, "b": true, "c": true}, s.LiveRevisions([]string{"c", "a"}))
	s.Chosen = revision.Choice{}
	assert.Equal(t, map[string]bool{"c": true}, s.LiveRevisions([]string{"c"}))
}

func TestImagesArePulledAheadOfWrittenRevisions(t *testing.T) {
	rollout := predownload.Rollout{Replicas: 2} // too few to pull for: jobs of older updates end
	ends := "pull:\n  Delete imagepulljob older (NoLongerWanted): pods no longer wait for the image\n"
	marks := "mark:\n  PatchMetadata controllerrevision web-b (PreDownload): pulling images before the update is unnecessary\n"
	both := revision.Choice{Current: named("web-a"), Update: named("web-b")}
	for name, c := range map[string]struct {
		choice func(*revision.Choice)
		err    error
		want   string
	}{
		"an update":                     {func(*revision.Choice) {}, nil, ends + marks},
		"no update":                     {func(c *revision.Choice) { c.Current = c.Update }, nil, ends},
		"a revision to write":           {func(c *revision.Choice) { c.Create = true }, nil, ""},
		"a revision to raise":           {func(c *revision.Choice) { c.Renumber = true }, nil, ""},
		"no current revision":           {func(c *revision.Choice) { c.Current = nil }, nil, ""},
		"no revision":                   {func(c *revision.Choice) { *c = revision.Choice{} }, nil, ""},
		"a spec that nobody can follow": {func(*revision.Choice) {}, errors.New("wrong"), ""},
	} {
		t.Run(name, func(t *testing.T) {
			choice := both
			c.choice(&choice)
			s, p := given(choice), Plan{Err: c.err}
			s.PreDownload(&p, rollout)
			assert.Equal(t, c.want, p.String())
		})
	}
}

func TestWhatIsPulledAheadWakesThePlan(t *testing.T) {
	s, p := given(revision.Choice{Current: named("web-b"), Update: named("web-b")}), Plan{}
	s.PullJobs.RetryAt = s.Now.Add(time.Minute)
	s.PreDownload(&p, predownload.Rollout{})
	assert.Empty(t, p.PreDownload.Steps)
	assert.Equal(t, time.Minute, p.RequeueAfter)
}

func TestAStatusNamesWhatIsKnown(t *testing.T) {
	s := given(revision.Choice{Current: named("web-a"), Update: named("web-b"), CollisionCount: 2})
	s.Set.Generation = 3
	var set appsv1.StatefulSetStatus
	selector := ""
	fields := StatusFields{&set.ObservedGeneration, &selector, &set.CurrentRevision, &set.UpdateRevision, &set.CollisionCount}
	s.SetStatus(&metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}}, fields)
	want := appsv1.StatefulSetStatus{ObservedGeneration: 3, CurrentRevision: "web-a", UpdateRevision: "web-b", CollisionCount: new(int32(2))}
	assert.Equal(t, want, set)
	assert.Equal(t, "app=web", selector)

	s.Chosen, s.Set.Generation = revision.Choice{}, 4
	s.SetStatus(&metav1.LabelSelector{MatchLabels: map[string]string{"not a key": ""}}, fields)
	want.ObservedGeneration = 4
	assert.Equal(t, want, set, "a revision that is unknown in this pass")
	assert.Equal(t, "app=web", selector, "a selector that nobody can read")
}
