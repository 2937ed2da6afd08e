package plan

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/flotilla-project/flotilla/core/contract"
	"github.com/flotilla-project/flotilla/core/plan/action"

	"github.com/flotilla-project/flotilla/jobs/api/v1beta1"
)

var now = time.Date(2026, 3, 4, 10, 0, 0, 0, time.UTC)

func list(images ...string) *v1beta1.ImageListPullJob {
	j := &v1beta1.ImageListPullJob{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "list", UID: "list", Generation: 2}}
	j.Spec.Images = images
	j.Spec.CompletionPolicy.TTLSecondsAfterFinished = new(int32(60))
	hash, _ := hashOf(childTemplate(j)) // templates have a JSON
	j.Labels = map[string]string{contract.RevisionLabel: hash}
	return j
}

// children returns what the job makes.
func children(t *testing.T, j *v1beta1.ImageListPullJob) []*v1beta1.ImagePullJob {
	t.Helper()
	p := Compute(Snapshot{Job: j, Now: now})
	require.NoError(t, p.Err)
	var made []*v1beta1.ImagePullJob
	for _, a := range p.Steps[0].Actions {
		child := a.Object.(*v1beta1.ImagePullJob).DeepCopy()
		child.UID = types.UID(child.Name)
		made = append(made, child)
	}
	return made
}

// has reports about two nodes.
func has(child *v1beta1.ImagePullJob, active, succeeded, failed int32) {
	child.Status = v1beta1.ImagePullJobStatus{StartTime: new(metav1.NewTime(now)), Desired: 2, Active: active, Succeeded: succeeded, Failed: failed}
	if active == 0 && succeeded+failed == 2 {
		child.Status.CompletionTime = new(metav1.NewTime(now))
	}
}

func TestChildrenOfLongNamesHaveValidNames(t *testing.T) {
	for _, end := range []string{".", "-", "a"} {
		j := list("a")
		j.Name = strings.Repeat("a", longestName-1) + end + "and-so-on"
		assert.Empty(t, validation.IsDNS1123Subdomain(children(t, j)[0].Name), "%q", end)
	}
}

func TestEachImageHasOneChild(t *testing.T) {
	j := list("a", "b")
	made := children(t, j)
	require.Len(t, made, 2)
	assert.Equal(t, "a", made[0].Spec.Image)
	assert.Nil(t, made[0].Spec.CompletionPolicy.TTLSecondsAfterFinished, "it would go before its siblings and be made again")
	assert.True(t, metav1.IsControlledBy(made[0], j))
	assert.NotEqual(t, made[0].Name, made[1].Name)
	assert.Equal(t, made[0].Name, children(t, j)[0].Name, "a crash makes none twice")
	p := Compute(Snapshot{Job: j, Children: made, Now: now})
	assert.True(t, p.Empty(), p.String())
}

// A list without names selects nothing, and an absent one everything.
func TestAnEmptyListOfNodesStaysOne(t *testing.T) {
	for names, want := range map[string][]string{`{}`: nil, `{"names":[]}`: {}} {
		j := list("a")
		j.Spec.Selector = &v1beta1.ImagePullJobNodeSelector{}
		require.NoError(t, json.Unmarshal([]byte(names), j.Spec.Selector))
		sent, err := json.Marshal(children(t, j)[0])
		require.NoError(t, err)
		var stored v1beta1.ImagePullJob
		require.NoError(t, json.Unmarshal(sent, &stored))
		assert.Equal(t, want, stored.Spec.Selector.Names, names)
	}
}

func TestStatusCountsImages(t *testing.T) {
	j := list("a", "b", "c")
	made := children(t, j)
	has(made[0], 0, 2, 0)
	has(made[1], 0, 1, 1)
	has(made[2], 1, 0, 0)
	p := Compute(Snapshot{Job: j, Children: made, Now: now})
	st := p.status
	assert.Equal(t, "3/1/2/1", fmt.Sprintf("%d/%d/%d/%d", st.Desired, st.Active, st.Completed, st.Succeeded))
	require.Len(t, st.FailedImageStatuses, 1)
	assert.Equal(t, "b", st.FailedImageStatuses[0].Name)
	assert.Equal(t, made[1].Name, st.FailedImageStatuses[0].ImagePullJob)
	assert.Nil(t, st.CompletionTime)

	has(made[2], 0, 2, 0)
	p = Compute(Snapshot{Job: j, Children: made, Now: now})
	assert.NotNil(t, p.status.CompletionTime)
	j.Spec.CompletionPolicy = v1beta1.CompletionPolicy{Type: v1beta1.CompletionNever}
	made = children(t, j)
	p = Compute(Snapshot{Job: j, Children: made, Now: now})
	assert.Nil(t, p.status.CompletionTime)
}

// An image whose ImagePullJob the server refuses is in the status with the reason, beside those that nodes could not pull.
func TestRefusedChildrenAreInTheStatus(t *testing.T) {
	j := list("a", "b", "c")
	made := children(t, j)
	has(made[1], 0, 1, 1)
	refused := action.Failures{ScaleError: "create ImagePullJob list-x: exceeded quota"}
	p := Compute(Snapshot{Job: j, Children: made[1:], Now: now})
	var got []string
	for _, failed := range p.Status(refused).FailedImageStatuses {
		got = append(got, failed.Name+" "+failed.ImagePullJob+": "+failed.Message)
	}
	assert.Equal(t, []string{
		"a : the ImagePullJob could not be created: create ImagePullJob list-x: exceeded quota",
		"b " + made[1].Name + ": 1 nodes failed; see the status of ImagePullJob " + made[1].Name,
	}, got)
	assert.Len(t, p.Status(action.Failures{}).FailedImageStatuses, 1, "it is made")
	assert.Len(t, p.Status(action.Failures{UpdateError: "no label"}).FailedImageStatuses, 1, "labels stop nothing")
}

func TestEditsReplaceChildren(t *testing.T) {
	j := list("a", "b")
	made := children(t, j)
	edited := list("b", "c")
	p := Compute(Snapshot{Job: edited, Children: made, Now: now})
	assert.Equal(t, 1, p.Count(action.Delete))
	assert.Equal(t, "c", p.Steps[1].Actions[0].Object.(*v1beta1.ImagePullJob).Spec.Image)

	edited = list("a", "b")
	edited.Spec.Parallelism = new(intstr.FromInt(3))
	p = Compute(Snapshot{Job: edited, Children: made, Now: now})
	assert.Equal(t, 2, p.Count(action.Delete))
	assert.Equal(t, 2, p.Count(action.Create))
}

// A child of OpenKruise has another hash, the time to live of its parent and what its webhook has filled in.
func TestChildrenOfOpenKruiseStay(t *testing.T) {
	j := list("a")
	child := children(t, j)[0]
	child.Name, child.Labels = "list-x7kq2", map[string]string{contract.RevisionLabel: "5d8f7c9b5d"}
	child.Spec.CompletionPolicy = v1beta1.CompletionPolicy{Type: v1beta1.CompletionAlways, TTLSecondsAfterFinished: new(int32(60))}
	child.Spec.PullPolicy = &v1beta1.PullPolicy{TimeoutSeconds: new(int32(600)), BackoffLimit: new(int32(3))}
	child.Spec.ImagePullPolicy = v1beta1.PullIfNotPresent
	p := Compute(Snapshot{Job: j, Children: []*v1beta1.ImagePullJob{child}, Now: now})
	assert.Equal(t, "label:\n  PatchSpec imagepulljob list-x7kq2 (Label): of the template\n", p.String())
	assert.Equal(t, map[string]any{
		"metadata": map[string]any{"labels": map[string]string{contract.RevisionLabel: j.Labels[contract.RevisionLabel]}},
		"spec":     map[string]any{"completionPolicy": map[string]any{"ttlSecondsAfterFinished": nil}},
	}, p.Steps[0].Actions[0].Patches[0].Body, "it would go before its siblings and be made again")

	child.Labels = children(t, j)[0].Labels
	p = Compute(Snapshot{Job: j, Children: []*v1beta1.ImagePullJob{child}, Now: now})
	assert.Equal(t, 1, p.Count(action.PatchSpec), "an earlier release has labelled it")
	child.Spec.CompletionPolicy.TTLSecondsAfterFinished = nil
	j.Labels = map[string]string{contract.RevisionLabel: "5d8f7c9b5d"}
	p = Compute(Snapshot{Job: j, Children: []*v1beta1.ImagePullJob{child}, Now: now})
	assert.Equal(t, "label:\n  PatchMetadata imagelistpulljob list (Label): of the template\n", p.String())
}

// Refused labels hold nothing up.
func TestLabelsAreNoCondition(t *testing.T) {
	j := list("a")
	j.Labels = nil
	p := Compute(Snapshot{Job: j, Now: now})
	require.Len(t, p.Steps, 2)
	assert.True(t, p.Steps[1].Optional)
	assert.Equal(t, "label", p.Steps[1].Name)
}

func TestChildrenThatAreTooManyGo(t *testing.T) {
	j := list("a")
	made := children(t, j)
	second := made[0].DeepCopy()
	second.Name, second.UID = "second", "second"
	p := Compute(Snapshot{Job: j, Children: []*v1beta1.ImagePullJob{made[0], second}, Now: now})
	assert.Equal(t, 1, p.Count(action.Delete))
	second.DeletionTimestamp = new(metav1.NewTime(now))
	p = Compute(Snapshot{Job: j, Children: []*v1beta1.ImagePullJob{second}, Now: now})
	assert.Equal(t, 1, p.Count(action.Create), "one that is going does not count")
}

func TestCompletedJobsGoInTime(t *testing.T) {
	j := list("a")
	j.Status.CompletionTime = new(metav1.NewTime(now.Add(-59 * time.Second)))
	p := Compute(Snapshot{Job: j, Now: now})
	assert.Equal(t, "wake after 1s\n", p.String())
	p = Compute(Snapshot{Job: j, Now: now.Add(time.Second)})
	assert.Equal(t, 1, p.Count(action.Delete))
}

// An edit of a list that has completed changes nothing, and is seen.
func TestAnEditAfterTheEndIsSeen(t *testing.T) {
	j := list("nginx")
	j.Generation = 2
	j.Status = v1beta1.ImageListPullJobStatus{CompletionTime: new(metav1.NewTime(now)), ObservedGeneration: 1, Desired: 1}
	p := Compute(Snapshot{Job: j, Now: now})
	assert.Empty(t, p.Steps)
	want := j.Status.DeepCopy()
	want.ObservedGeneration = 2
	assert.Equal(t, want, p.status)
}
