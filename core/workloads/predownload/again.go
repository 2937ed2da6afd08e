package predownload

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/flotilla-project/flotilla/core/contract"
	"github.com/flotilla-project/flotilla/core/plan/action"
	"github.com/flotilla-project/flotilla/core/pods/podspec"
	"github.com/flotilla-project/flotilla/core/pods/podstate"
)

const (
	// lookInterval is when a pass looks how far the jobs are. Nothing else wakes a workload for them.
	lookInterval = time.Minute
	// The pauses before images are pulled again: the shortest where no node or one round of nodes has failed, twice the one
	// before for each further round, up to the longest.
	shortestPause = time.Minute
	longestPause  = time.Hour
	// mostFailures is after how many rounds in a row nodes that fail are left alone.
	mostFailures = 6
)

// Round is a pull of the images of an update revision: the jobs that were made together.
type Round struct {
	// Nodes are the nodes of older pods that it serves or has served; nil where that is not known. Until it ends, these
	// are the nodes that were there when it began. Read-only.
	Nodes map[string]bool
	// Began is when its jobs were made, Ended when they were seen to have ended; zero for unknown.
	Began, Ended time.Time
	// Failed are the images that nodes have not pulled, each with its last job. Read-only.
	Failed map[string]*Job
	// Failures is how many rounds in a row had such nodes.
	Failures int
}

// pause is how long after its end no other round begins.
func (r *Round) pause() time.Duration {
	pause := shortestPause
	for n := 1; n < r.Failures && pause < longestPause; n++ {
		pause *= 2
	}
	return min(pause, longestPause)
}

// cause is why images are pulled again.
type cause struct {
	why    string
	images map[string]*Job // nil for all
}

func (c *cause) concerns(image string) bool {
	_, named := c.images[image]
	return named || c.images == nil
}

// pullAgain serves nodes that could not pull the images in the last round, or that older pods came to since it ended.
func (p *planner) pullAgain() {
	p.addSteps(p.deleteJobs(p.Update))
	last := p.Jobs.Round
	if p.underWay() {
		last.Ended = time.Time{}
		p.plan.Round = &last
		p.plan.RequeueWithin(lookInterval)
		return
	}
	if last.Ended.IsZero() {
		last = p.end(last)
		p.plan.Round = &last
	}
	again := p.cause(&last)
	if again == nil {
		return
	}
	if wait := last.Ended.Add(last.pause()).Sub(p.Now); wait > 0 {
		p.plan.RequeueWithin(wait)
		return
	}
	if jobs, ok := p.createJobs(again); ok && len(jobs.Actions) > 0 {
		p.begin(Round{Failures: last.Failures}, p.deleteJobs(p.Update), jobs)
	}
}

// begin adds the steps with which a round begins, not before a failed attempt may be repeated.
func (p *planner) begin(r Round, steps ...action.Step) {
	p.addSteps(steps...)
	if len(p.plan.Steps) > 0 {
		r.Began = p.Now
		r.Nodes = p.nodesBefore(time.Time{})
		p.plan.Round = &r
	}
}

// underWay reports whether a job of the update revision pulls, or has been made and is not seen yet.
func (p *planner) underWay() bool {
	began := p.Jobs.Round.Began.Truncate(time.Second)
	seen := began.IsZero()
	for _, job := range p.ofUpdate() {
		if !job.Ended {
			return true
		}
		seen = seen || !job.CreationTimestamp.Time.Before(began)
	}
	return !seen && p.Now.Sub(began) < lookInterval
}

// ofUpdate are the jobs of the update revision.
func (p *planner) ofUpdate() []*Job {
	var jobs []*Job
	for _, job := range p.Jobs.Owned {
		if job.Labels[contract.RevisionHashLabel] == podstate.ShortHash(p.Update.Name) {
			jobs = append(jobs, job)
		}
	}
	return jobs
}

// end is the round once its jobs have ended. The last job of an image shows the result. If that job is gone, the nodes
// that were there when the round began count as served.
func (p *planner) end(r Round) Round {
	latest := map[string]*Job{}
	for _, job := range p.ofUpdate() {
		if known := latest[job.Image]; known == nil || known.CreationTimestamp.Before(&job.CreationTimestamp) {
			latest[job.Image] = job
		}
	}
	if until, known := p.servedUntil(latest); known || r.Nodes == nil {
		r.Nodes = p.nodesBefore(until)
	}
	r.Failed = latest
	maps.DeleteFunc(r.Failed, func(_ string, job *Job) bool { return job.Lacking <= 0 })
	r.Ended = p.Now
	if len(r.Failed) == 0 {
		r.Failures = 0
		return r
	}
	if r.Failures++; r.Failures == mostFailures {
		p.plan.Notices = append(p.plan.Notices, action.Notice{
			Type:   corev1.EventTypeWarning,
			Reason: EventGivenUp,
			Note: fmt.Sprintf(
				"%s in %d rounds of image pull jobs; their pods pull the image when they are updated", lacking(r.Failed), mostFailures),
		})
	}
	return r
}

// servedUntil is until when nodes that older pods came to were served with all images that change: the first of these jobs to
// end has missed the later ones, even if the end was not seen yet when they came.
func (p *planner) servedUntil(jobs map[string]*Job) (until time.Time, known bool) {
	template, has, err := p.images()
	for _, c := range podspec.LongRunning(&template.Spec) {
		if err != nil || has(c) {
			continue
		}
		job := jobs[c.Image]
		if job == nil || job.Completed.IsZero() {
			return time.Time{}, false
		}
		if until.IsZero() || job.Completed.Before(until) {
			until = job.Completed
		}
	}
	return until, !until.IsZero()
}

// cause returns why images are pulled again, nil for no reason.
func (p *planner) cause(last *Round) *cause {
	if came := p.came(last); came > 0 {
		return &cause{why: fmt.Sprintf("%d of %d nodes with older pods were added since", came, len(p.nodesBefore(time.Time{})))}
	}
	if len(last.Failed) > 0 && last.Failures < mostFailures {
		return &cause{why: lacking(last.Failed), images: last.Failed}
	}
	return nil
}

// lacking names the worst image and the number of nodes that could not pull it.
func lacking(failed map[string]*Job) string {
	worst := slices.MaxFunc(slices.Collect(maps.Values(failed)), func(a, b *Job) int {
		return cmp.Or(cmp.Compare(a.Lacking, b.Lacking), cmp.Compare(b.Image, a.Image))
	})
	return fmt.Sprintf("%d of %d nodes have not pulled image %s", worst.Lacking, worst.Desired, worst.Image)
}

// came counts the nodes of older pods that the round has not served.
func (p *planner) came(r *Round) int {
	came := 0
	for node := range p.nodesBefore(time.Time{}) {
		if !r.Nodes[node] {
			came++
		}
	}
	return came
}

// nodesBefore are the nodes that older pods have come to before that time, and all of them without one.
func (p *planner) nodesBefore(end time.Time) map[string]bool {
	nodes := map[string]bool{}
	for node, since := range p.OldNodes {
		if end.IsZero() || since.Before(end) {
			nodes[node] = true
		}
	}
	return nodes
}
