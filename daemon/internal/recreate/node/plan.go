package node

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/flotilla-project/flotilla/daemon/api/v1beta1"
)

const (
	// defaultGrace is the time for hook and stop of a request that does not say one.
	defaultGrace = 30 * time.Second
	// lookAgain is how often the runtime is looked at while it is expected to move.
	lookAgain = time.Second
	// lookAgainAtMost bounds the time between two looks at a container that does not come back.
	lookAgainAtMost = 10 * time.Second
)

// Compute says what to do next for the requests of one pod: one request at a time, one stop at a time.
func Compute(s Snapshot) Plan {
	queue := waiting(s)
	plan := Plan{Abort: abandoned(s, queue)}
	if len(queue) == 0 {
		return plan
	}
	p := &pass{Snapshot: s, request: queue[0], plan: &plan}
	p.advance()
	for _, later := range queue[1:] {
		if later.Status.Phase == "" {
			plan.Writes = append(plan.Writes, Write{later, map[string]any{"phase": v1beta1.RecreatePending}})
		}
	}
	return plan
}

// waiting are the requests that are not over, in their turn: who has begun first, then the older one.
func waiting(s Snapshot) []*v1beta1.ContainerRecreateRequest {
	var queue []*v1beta1.ContainerRecreateRequest
	for _, r := range s.Requests {
		mine := s.PodUID != "" && r.Labels[v1beta1.PodUIDLabel] == string(s.PodUID)
		if mine && r.DeletionTimestamp == nil && r.Status.Phase != v1beta1.RecreateCompleted {
			queue = append(queue, r)
		}
	}
	slices.SortFunc(queue, func(a, b *v1beta1.ContainerRecreateRequest) int {
		return cmp.Or(
			cmp.Compare(rank(a), rank(b)),
			a.CreationTimestamp.Compare(b.CreationTimestamp.Time),
			cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name),
		)
	})
	return queue
}

func rank(r *v1beta1.ContainerRecreateRequest) int {
	switch r.Status.Phase {
	case v1beta1.RecreateRecreating:
		return 0
	case v1beta1.RecreatePending:
		return 1
	default:
		return 2
	}
}

// abandoned are the stops under way that no waiting request has asked for.
func abandoned(s Snapshot, queue []*v1beta1.ContainerRecreateRequest) []string {
	wanted := map[types.UID]bool{}
	for _, r := range queue {
		wanted[r.UID] = true
	}
	var ids []string
	for _, id := range slices.Sorted(maps.Keys(s.Stops)) {
		if stop := s.Stops[id]; !stop.Ended && !wanted[stop.Request] {
			ids = append(ids, id)
		}
	}
	return ids
}

// pass is the working state of one computation.
type pass struct {
	Snapshot
	request *v1beta1.ContainerRecreateRequest
	plan    *Plan
}

// advance takes the request whose turn it is one step further. Containers are judged once the pod has been out
// of service for long enough.
func (p *pass) advance() {
	if grace := p.graceLeft(); grace != 0 {
		p.record(p.present())
		p.wake(grace)
		return
	}
	containers := p.request.Spec.Containers
	all := make([]judged, len(containers))
	for i := range containers {
		all[i] = p.judge(&containers[i])
	}
	kill := p.choose(all)
	states := make([]v1beta1.ContainerRecreateState, len(all))
	for i := range all {
		states[i] = all[i].state
		p.wake(all[i].wake)
	}
	if p.over(all) {
		p.complete(states)
		return
	}
	p.record(states)
	p.plan.Kill = kill
}

// present are the states as they are, Pending for containers without one.
func (p *pass) present() []v1beta1.ContainerRecreateState {
	states := make([]v1beta1.ContainerRecreateState, len(p.request.Spec.Containers))
	for i := range states {
		states[i] = p.before(p.request.Spec.Containers[i].Name)
	}
	return states
}

// record writes the states of a request that goes on, if they are news.
func (p *pass) record(states []v1beta1.ContainerRecreateState) {
	if p.request.Status.Phase != v1beta1.RecreateRecreating || !equality.Semantic.DeepEqual(p.request.Status.ContainerRecreateStates, states) {
		p.write(map[string]any{"phase": v1beta1.RecreateRecreating, "containerRecreateStates": states})
	}
}

// choose picks the container to stop, and marks it in its state, so that the mark is written first.
func (p *pass) choose(all []judged) *Kill {
	strategy := p.strategy()
	for i := range all {
		j := &all[i]
		switch {
		case j.verdict == failed && strategy.FailurePolicy != v1beta1.FailurePolicyIgnore:
			return nil
		case j.verdict == succeeded, j.verdict == failed:
		case j.verdict == stopping:
			return nil
		case j.verdict != stoppable:
			if strategy.OrderedRecreate {
				return nil
			}
		case p.stopUnderWay():
			return nil
		default:
			j.state.Phase, j.state.IsKilled, j.state.Message = v1beta1.RecreateRecreating, true, recordOf(j.run.ID)
			return p.kill(&p.request.Spec.Containers[i], j.run.ID)
		}
	}
	return nil
}

func (p *pass) kill(c *v1beta1.ContainerToRecreate, id string) *Kill {
	grace := defaultGrace
	if seconds := p.strategy().TerminationGracePeriodSeconds; seconds != nil {
		grace = time.Duration(*seconds) * time.Second
	}
	return &Kill{
		Request: p.request, Container: c.Name, ContainerID: id, PreStop: c.PreStop, Ports: c.Ports, Grace: grace,
		Message: fmt.Sprintf("Stopping container %s by ContainerRecreateRequest %s", c.Name, p.request.Name),
	}
}

func (p *pass) stopUnderWay() bool {
	for _, stop := range p.Stops {
		if !stop.Ended {
			return true
		}
	}
	return false
}

// graceLeft is the rest of unreadyGracePeriodSeconds; negative while the manager has not taken the pod out
// of service. Once a container was judged the time is over.
func (p *pass) graceLeft() time.Duration {
	seconds := p.strategy().UnreadyGracePeriodSeconds
	begun := slices.ContainsFunc(p.request.Status.ContainerRecreateStates, func(s v1beta1.ContainerRecreateState) bool {
		return s.IsKilled || s.Phase != v1beta1.RecreatePending
	})
	if seconds == nil || begun {
		return 0
	}
	if !meta.IsStatusConditionTrue(p.request.Status.Conditions, v1beta1.PreRecreateGrace) {
		return -1
	}
	since, ok := p.GraceSeen[p.request.UID]
	if !ok {
		since = p.Now
	}
	return max(since.Add(time.Duration(*seconds)*time.Second).Sub(p.Now), 0)
}

// over says that nothing is left to do for the request: all containers have an end, or one has failed and
// nobody said to ignore it.
func (p *pass) over(all []judged) bool {
	ignore := p.strategy().FailurePolicy == v1beta1.FailurePolicyIgnore
	left := 0
	for i := range all {
		switch {
		case all[i].verdict == failed && !ignore:
			return true
		case all[i].verdict != succeeded && all[i].verdict != failed:
			left++
		}
	}
	return left == 0
}

func (p *pass) complete(states []v1beta1.ContainerRecreateState) {
	p.plan.WakeAfter = 0
	p.write(map[string]any{
		"phase": v1beta1.RecreateCompleted, "completionTime": metav1.NewTime(p.Now), "containerRecreateStates": states,
	})
}

func (p *pass) write(status map[string]any) {
	p.plan.Writes = append(p.plan.Writes, Write{p.request, status})
}

func (p *pass) wake(d time.Duration) {
	if d > 0 && (p.plan.WakeAfter == 0 || d < p.plan.WakeAfter) {
		p.plan.WakeAfter = d
	}
}

func (p *pass) strategy() v1beta1.RecreateStrategy {
	if s := p.request.Spec.Strategy; s != nil {
		return *s
	}
	return v1beta1.RecreateStrategy{}
}
