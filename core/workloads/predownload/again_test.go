package predownload

import (
	"fmt"
	"iter"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/flotilla-project/flotilla/core/contract"
	"github.com/flotilla-project/flotilla/core/plan/action"
)

// on yields the nodes of a list, to which pods came long ago.
func on(nodes string) iter.Seq2[string, time.Time] { return since(time.Time{}, nodes) }

// since yields the nodes of a list, to which pods came at that time.
func since(at time.Time, nodes string) iter.Seq2[string, time.Time] {
	return func(yield func(string, time.Time) bool) {
		for node := range strings.FieldsSeq(nodes) {
			if !yield(node, at) {
				return
			}
		}
	}
}

// course is a rollout from now on, whose plans succeed. What it remembers is given to the next plan.
type course struct {
	t *testing.T
	r Rollout
}

// givenCourse is a rollout whose jobs are just made.
func givenCourse(t *testing.T) *course {
	t.Helper()
	c := &course{t, given(t)}
	require.Equal(t, []string{"app app:2"}, c.pass(0))
	return c
}

// pass plans after a time and returns the names of the jobs that are made, without the revision, and why.
func (c *course) pass(after time.Duration) []string {
	c.r.Now = c.r.Now.Add(after)
	todo := PlanJobs(c.r)
	if todo.Round != nil {
		c.r.Jobs.Round = *todo.Round
	}
	var made []string
	for _, step := range todo.Steps {
		for _, a := range step.Actions {
			switch a.Verb {
			case action.Create:
				u := a.Object.(*unstructured.Unstructured)
				u.SetCreationTimestamp(metav1.NewTime(c.r.Now.Truncate(time.Second)))
				c.r.Jobs.Owned = append(c.r.Jobs.Owned, ReadJob(u))
				made = append(made, strings.TrimPrefix(u.GetName(), c.r.Update.Name+"-")+" "+strings.TrimPrefix(a.Message, "image "))
			case action.PatchMetadata:
				c.r.Update.Labels[contract.ImagePreDownloadCreatedLabel] = "true"
			default: // other writes make no job
			}
		}
	}
	for _, n := range todo.Notices {
		made = append(made, n.Reason+": "+n.Note)
	}
	return made
}

// ends ends the last job, and a number of nodes have failed.
func (c *course) ends(lacking int64) {
	job := c.r.Jobs.Owned[len(c.r.Jobs.Owned)-1]
	job.Ended, job.Completed, job.Desired, job.Lacking = true, c.r.Now, 5, lacking
}

func (c *course) expires() { c.r.Jobs.Owned = nil }

func TestNodesThatFailedPullAgain(t *testing.T) {
	c := givenCourse(t)
	assert.Empty(t, c.pass(time.Hour), "no job while one pulls")
	c.ends(2)
	assert.Empty(t, c.pass(0), "not at once")
	assert.Empty(t, c.pass(59*time.Second))
	assert.Equal(t, []string{"app-2 app:2 again: 2 of 5 nodes have not pulled image app:2"}, c.pass(time.Second))
	assert.Empty(t, c.pass(time.Hour))
	c.ends(0)
	assert.Empty(t, c.pass(0))
	assert.Empty(t, c.pass(24*time.Hour), "all nodes have it")
}

// A job is gone ten minutes after its end; what became of it is remembered.
func TestPausesOutlastJobsAndRoundsEnd(t *testing.T) {
	c := givenCourse(t)
	var pauses []time.Duration
	var told []string
	for range 10 {
		c.ends(1)
		c.r.Now = c.r.Now.Add(time.Minute)
		told = append(told, c.pass(0)...)
		c.expires()
		ended := c.r.Now
		for len(c.r.Jobs.Owned) == 0 && c.r.Now.Sub(ended) < 48*time.Hour {
			c.pass(time.Minute)
		}
		if len(c.r.Jobs.Owned) == 0 {
			break
		}
		pauses = append(pauses, c.r.Now.Sub(ended))
	}
	assert.Equal(t, []time.Duration{time.Minute, 2 * time.Minute, 4 * time.Minute, 8 * time.Minute, 16 * time.Minute}, pauses)
	assert.Equal(t, []string{EventGivenUp + ": 1 of 5 nodes have not pulled image app:2 in 6 rounds of image pull jobs; their pods pull the image when they are updated"}, told)
}

func TestNodesThatCamePull(t *testing.T) {
	c := givenCourse(t)
	c.r.OldNodes = on("n1 n2 n3 n4 n5 n6")
	assert.Empty(t, c.pass(time.Minute), "the job finds them")
	c.ends(0)
	assert.Empty(t, c.pass(time.Minute))
	c.r.OldNodes = on("n2 n3 n7 n8 n8")
	assert.Equal(t, []string{"app-2 app:2 again: 2 of 4 nodes with older pods were added since"}, c.pass(time.Minute))
	c.ends(0)
	c.pass(time.Minute)
	c.r.OldNodes = on("n9")
	assert.Empty(t, c.pass(30*time.Second), "not one after the other")
	assert.Equal(t, []string{"app-3 app:2 again: 1 of 1 nodes with older pods were added since"}, c.pass(30*time.Second))
	c.ends(0)
	c.expires()
	c.pass(time.Minute)
	c.r.OldNodes = on("n2 n9")
	assert.Len(t, c.pass(time.Hour), 1, "the nodes of the last round count")
}

// The end of a job is seen late, or by the next process: nodes that pods came to in between count as come all the same.
func TestNodesThatCameBeforeTheEndWasSeenPull(t *testing.T) {
	for name, tt := range map[string]struct {
		came   time.Duration // after the end of the job
		change func(*course)
		want   int
	}{
		"before the end":           {-time.Second, func(*course) {}, 0},
		"in the same second":       {0, func(*course) {}, 1},
		"after it":                 {time.Second, func(*course) {}, 1},
		"before it, and a restart": {-time.Second, func(c *course) { c.r.Jobs.Round = Round{} }, 0},
		"after it, and a restart":  {time.Second, func(c *course) { c.r.Jobs.Round = Round{} }, 1},
		"the job is gone":          {time.Second, func(c *course) { c.r.Jobs.Round = Round{}; c.expires() }, 0},
	} {
		t.Run(name, func(t *testing.T) {
			c := givenCourse(t)
			c.r.Now = c.r.Now.Add(time.Minute)
			end := c.r.Now
			c.r.OldNodes = since(end.Add(tt.came), "n7")
			c.pass(10 * time.Second) // the cache still shows that the job pulls
			c.ends(0)
			c.r.Jobs.Owned[0].Completed = end
			tt.change(c)
			assert.Empty(t, c.pass(10*time.Second))
			assert.Len(t, c.pass(time.Minute), tt.want)
		})
	}
}

// A round that repeats one image brings the others to no node.
func TestNodesThatComeWhileOneImageIsRepeatedLackTheOthers(t *testing.T) {
	for name, expire := range map[string]bool{"its job is there": false, "its job is gone": true} {
		t.Run(name, func(t *testing.T) {
			c := &course{t, given(t, func(r *Rollout) { r.Update = newRevision(t, "app:2", "log:2") })}
			require.Len(t, c.pass(0), 2)
			c.ends(3)
			c.r.Jobs.Owned[0].Ended, c.r.Jobs.Owned[0].Completed = true, c.r.Now
			c.pass(time.Minute)
			require.Len(t, c.pass(time.Minute), 1, "one image is repeated")
			if expire {
				c.r.Jobs.Owned = c.r.Jobs.Owned[1:]
			}
			c.r.OldNodes = since(c.r.Now.Add(time.Second), "n7")
			c.pass(time.Minute)
			c.ends(0)
			c.pass(time.Minute)
			assert.Len(t, c.pass(time.Minute), 2)
		})
	}
}

// A process that has just begun knows the jobs that are there, and takes the nodes for served.
func TestABeginningRemembersNothing(t *testing.T) {
	for name, lacking := range map[string]int64{"failed": 1, "well": 0} {
		t.Run(name, func(t *testing.T) {
			c := givenCourse(t)
			c.ends(lacking)
			c.r.Jobs.Round = Round{}
			c.pass(time.Hour)
			assert.Len(t, c.pass(time.Minute), int(lacking))
		})
	}
	c := givenCourse(t)
	c.expires()
	c.r.Jobs.Round = Round{}
	assert.Empty(t, c.pass(time.Hour))
	assert.Empty(t, c.pass(time.Hour))
}

// A job that the cache does not show yet pulls; one that it has not shown for a minute is gone.
func TestJobsAreSeenLate(t *testing.T) {
	c := givenCourse(t)
	c.expires()
	c.r.OldNodes = on("n7")
	assert.Empty(t, c.pass(30*time.Second))
	c.r.OldNodes = on("n8")
	assert.Empty(t, c.pass(30*time.Second), "the end is seen")
	assert.Len(t, c.pass(time.Minute), 1)
}

// Only what failed is pulled again, and by the last job of an image.
func TestOnlyImagesThatFailedAreRepeated(t *testing.T) {
	c := &course{t, given(t, func(r *Rollout) { r.Update = newRevision(t, "app:2", "log:2") })}
	require.Len(t, c.pass(0), 2)
	c.ends(3)
	c.r.Jobs.Owned[0].Ended, c.r.Jobs.Owned[0].Completed = true, c.r.Now
	c.pass(time.Minute)
	assert.Equal(t, []string{"log-2 log:2 again: 3 of 5 nodes have not pulled image log:2"}, c.pass(time.Minute))
	c.ends(0)
	c.pass(time.Minute)
	assert.Empty(t, c.pass(24*time.Hour))
}

func TestNothingIsRepeatedWithoutUse(t *testing.T) {
	for name, change := range map[string]func(*Rollout){
		"few replicas":      func(r *Rollout) { r.Replicas = 3 },
		"not in place":      func(r *Rollout) { r.Useful = func() bool { return false } },
		"jobs are unknown":  func(r *Rollout) { r.Jobs.Problem = "forbidden" },
		"refused just now":  func(r *Rollout) { r.Jobs.RetryAt = now.Add(48 * time.Hour) },
		"the rollout ended": func(r *Rollout) { r.From = nil },
	} {
		t.Run(name, func(t *testing.T) {
			c := givenCourse(t)
			c.ends(1)
			c.pass(time.Minute)
			change(&c.r)
			assert.Empty(t, c.pass(time.Hour))
			assert.False(t, c.r.Jobs.Round.Began.After(now), "a round began")
		})
	}
}

func TestTheEndOfARolloutIsForgotten(t *testing.T) {
	c := givenCourse(t)
	assert.Len(t, c.r.Jobs.Round.Nodes, 5)
	c.r.From = nil
	c.pass(0)
	assert.Equal(t, Round{}, c.r.Jobs.Round)
}

func TestJobsAreRead(t *testing.T) {
	status := func(fields map[string]any) *unstructured.Unstructured {
		job := &unstructured.Unstructured{Object: map[string]any{
			"metadata": map[string]any{"name": "a", "uid": "u", "labels": map[string]any{"k": "v"}, "creationTimestamp": "2026-01-02T12:00:00Z"},
			"spec":     map[string]any{"image": "app:2"}, "status": fields,
		}}
		job.SetGroupVersionKind(contract.ImagePullJobGVK("v1alpha1"))
		return job
	}
	for name, c := range map[string]struct {
		status map[string]any
		want   string
	}{
		"new":             {nil, "false 0"},
		"it pulls":        {map[string]any{"desired": int64(3), "succeeded": int64(1), "failed": int64(1)}, "false 0"},
		"ended well":      {map[string]any{"desired": int64(3), "succeeded": int64(3), "completionTime": "2026-01-02T12:01:00Z"}, "true 0"},
		"failed":          {map[string]any{"desired": int64(3), "failed": int64(3), "completionTime": "2026-01-02T12:01:00Z"}, "true 3"},
		"out of its time": {map[string]any{"desired": int64(3), "succeeded": int64(1), "completionTime": "2026-01-02T12:01:00Z"}, "true 2"},
	} {
		t.Run(name, func(t *testing.T) {
			job := ReadJob(status(c.status))
			assert.Equal(t, c.want, fmt.Sprint(job.Ended, job.Lacking))
			assert.Equal(t, job.Ended, job.Completed.Equal(now.Add(time.Minute)))
			assert.Equal(t, []any{"a", "app:2", "v", "v1alpha1"}, []any{job.Name, job.Image, job.Labels["k"], job.GroupVersionKind().Version})
			assert.True(t, job.CreationTimestamp.Time.Equal(now))
		})
	}
}
