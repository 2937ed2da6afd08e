package plan

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/flotilla-project/flotilla/core/plan/action"
	"github.com/flotilla-project/flotilla/core/pods/podstate"

	"github.com/flotilla-project/flotilla/budget/api/v1beta1"
	"github.com/flotilla-project/flotilla/budget/internal/conversion"
	"github.com/flotilla-project/flotilla/budget/internal/disruption"
)

// recheck is how often a change is looked at again that a node does not carry out.
const recheck = 30 * time.Second

// Snapshot is the state that was read of one budget.
type Snapshot struct {
	Budget *v1beta1.PodUnavailableBudget
	// Pods are those that the budget covers.
	Pods []*corev1.Pod
	// Workloads are those that the pods belong to, or the target.
	Workloads []disruption.Workload
	// Looks are pods that the cache does not show as they are, among them those that LookAt has named.
	Looks Looks
	// Shared names another budget and a pod that both cover; empty if there is none.
	Shared, SharedPod string
	// SharedUnknown is true if that could not be found out: condition Conflict stays as it is.
	SharedUnknown bool
	Sights        disruption.Sights
	// Replacements also follow from the server's answers.
	Replacements Replacements
	Now          time.Time
	Refusals     action.Refusals

	later map[disruption.Entry]bool // granted since all else was read
}

// Plan is the result for a snapshot.
type Plan struct {
	action.Plan
	Status v1beta1.PodUnavailableBudgetStatus
	// Undone are pods with a granted deletion that has not happened.
	Undone []*corev1.Pod
	// Err is why the limit cannot be evaluated.
	Err error

	unseen map[string]bool // names of pods with a grant that the cache has not shown yet
}

// Compute returns the next status of a budget.
func Compute(s Snapshot) Plan {
	p := Plan{Plan: action.Plan{Refusals: s.Refusals, Now: s.Now}, Status: *s.Budget.Status.DeepCopy()}
	covered := s.covered()
	pods := slices.DeleteFunc(slices.Clone(covered), func(pod *corev1.Pod) bool { return !podstate.IsActive(pod) })
	p.expire(&s, pods)
	p.forget()
	p.count(&s, pods)
	p.conditions(&s, covered)
	p.Status.ObservedGeneration = s.Budget.Generation
	if s.Budget.Status.ObservedGeneration != s.Budget.Generation {
		p.tell(len(pods))
	}
	return p
}

// Renew returns the plan for a newer version of the budget, in which admission has granted disruptions since the snapshot
// was read. ok is false if another client has ended grants or edited the budget: the pods must be read again then.
func (s Snapshot) Renew(newer *v1beta1.PodUnavailableBudget) (p Plan, ok bool) {
	if newer.Generation != s.Budget.Generation || !maps.Equal(newer.Annotations, s.Budget.Annotations) {
		return Plan{}, false
	}
	known := map[disruption.Entry]disruption.Grant{}
	for _, g := range disruption.Grants(&s.Budget.Status) {
		known[g.Entry()] = g
	}
	s.later = map[disruption.Entry]bool{}
	for _, g := range disruption.Grants(&newer.Status) {
		if known[g.Entry()] != g {
			s.later[g.Entry()] = true
		}
		delete(known, g.Entry())
	}
	if len(known) > 0 {
		return Plan{}, false
	}
	s.Budget = newer
	return Compute(s), true
}

// LookAt returns the names of pods that the server must be asked about: before a grant is dropped, as the caches may lag,
// and once a change is granted, as they have no containers. Pods are the pods of the namespace that the ledger names, as
// far as they are known.
func (s *Snapshot) LookAt(pods map[string]*corev1.Pod) []string {
	var names []string
	for _, g := range disruption.Grants(&s.Budget.Status) {
		pod := pods[g.Pod]
		if pod == nil || g.UID != "" && pod.UID != g.UID || s.ends(g, pod) || !g.Disrupts && !s.Replacements.has(g) {
			names = append(names, g.Pod)
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// ends reports whether the grant ends according to its pod in the caches.
func (s *Snapshot) ends(g disruption.Grant, pod *corev1.Pod) bool {
	if !podstate.IsActive(pod) || s.Sights.Left(g, pod, s.Now) > 0 {
		return false
	}
	return g.Disrupts || disruption.IsSettled(pod) && !s.Replacements.areFresh(g, s.Now)
}

// covered returns the pods that the budget covers, as the server has them where it was asked.
func (s *Snapshot) covered() []*corev1.Pod {
	all := make([]*corev1.Pod, 0, len(s.Pods))
	for _, pod := range s.Pods {
		if pod = s.Looks.Newest(pod.Name, pod); pod != nil {
			all = append(all, pod)
		}
	}
	slices.SortFunc(all, func(a, b *corev1.Pod) int { return cmp.Compare(a.Name, b.Name) })
	return all
}

// expire drops the entries that have been carried out, and entries without a visible effect in time.
func (p *Plan) expire(s *Snapshot, pods []*corev1.Pod) {
	p.unseen = map[string]bool{}
	byName := make(map[string]*corev1.Pod, len(pods))
	for _, pod := range pods {
		byName[pod.Name] = pod
	}
	for _, g := range disruption.Grants(&s.Budget.Status) {
		if s.later[g.Entry()] {
			p.RequeueWithin(askAgain)
			continue
		}
		pod := byName[g.Pod]
		if s.isUnseen(g) {
			p.unseen[g.Pod] = true
			if pod = s.Looks[g.Pod].Pod; !podstate.IsActive(pod) {
				p.RequeueWithin(askAgain)
				continue
			}
		}
		if pod == nil || g.UID != "" && pod.UID != g.UID {
			p.drop(g)
			continue
		}
		switch left := s.Sights.Left(g, pod, s.Now); {
		case left > 0:
			p.RequeueWithin(min(left, askAgain))
			if s.Sights.AreWorn(g, s.Now) {
				p.close(g)
			}
		case g.Disrupts:
			p.drop(g)
			p.Undone = append(p.Undone, pod)
		case disruption.IsSettled(pod):
			if left := s.Replacements.left(g, s.Now); left > 0 {
				p.RequeueWithin(min(left, askAgain))
			} else {
				p.drop(g)
			}
		default:
			p.RequeueWithin(recheck)
		}
	}
}

// isUnseen reports whether the server has the pod and the cache has not shown it yet. The cache may still show the pod that
// it has replaced.
func (s *Snapshot) isUnseen(g disruption.Grant) bool {
	l := s.Looks[g.Pod]
	return l.Unseen && (g.UID == "" || g.UID == l.Pod.UID)
}

// close has the entry let its pod go no more, so that it ends although its disruption is asked for all the time.
func (p *Plan) close(g disruption.Grant) {
	grant := p.Status.Grants[g.Pod]
	grant.Closed = true
	p.Status.Grants = disruption.With(p.Status.Grants, g.Pod, grant)
}

func (p *Plan) drop(g disruption.Grant) {
	st := &p.Status
	if g.Disrupts {
		st.DisruptedPods = disruption.Without(st.DisruptedPods, g.Pod)
	} else {
		st.UnavailablePods = disruption.Without(st.UnavailablePods, g.Pod)
	}
	_, disrupted := st.DisruptedPods[g.Pod]
	_, unavailable := st.UnavailablePods[g.Pod]
	if !disrupted && !unavailable {
		st.PodUIDs = disruption.Without(st.PodUIDs, g.Pod)
		st.Grants = disruption.Without(st.Grants, g.Pod)
	}
}

// forget drops the ledger's data about pods without an entry. A manager of an earlier release leaves that behind.
func (p *Plan) forget() {
	st := &p.Status
	for name := range st.Grants {
		_, disrupted := st.DisruptedPods[name]
		if _, unavailable := st.UnavailablePods[name]; !disrupted && !unavailable {
			st.Grants = disruption.Without(st.Grants, name)
		}
	}
}

// count computes the numbers.
func (p *Plan) count(s *Snapshot, pods []*corev1.Pod) {
	spec := &s.Budget.Spec
	protected := protectedTotal(s.Budget)
	orphaned := protected == nil && !slices.ContainsFunc(s.Workloads, func(w disruption.Workload) bool { return w.Replicas > 0 }) &&
		(spec.TargetReference != nil || !slices.ContainsFunc(pods, hasNoController))
	p.Status.TotalReplicas = total(protected, s.Workloads)
	p.Status.DesiredAvailable, p.Err = desired(spec, p.Status.TotalReplicas, orphaned)
	p.Status.CurrentAvailable = 0
	idle := spec.TargetReference != nil && p.Status.TotalReplicas == 0 // as in OpenKruise, which counts no pods then
	for _, pod := range pods {
		if !idle && disruption.IsAvailable(pod) && !disruption.HasEntry(&p.Status, pod) {
			p.Status.CurrentAvailable++
		}
	}
	p.Status.CurrentAvailable = max(0, p.Status.CurrentAvailable-int32(len(p.unseen))) //nolint:gosec // no more than grants
	p.Status.UnavailableAllowed = disruption.Allowed(&p.Status)
}

func hasNoController(pod *corev1.Pod) bool { return metav1.GetControllerOfNoCopy(pod) == nil }

// protectedTotal is the user's number of replicas; nil for none.
func protectedTotal(b *v1beta1.PodUnavailableBudget) *int32 {
	if b.Spec.ProtectTotalReplicas != nil {
		return b.Spec.ProtectTotalReplicas
	}
	n, err := conversion.Replicas(b.Annotations[v1beta1.ProtectTotalReplicasAnnotation])
	if err != nil {
		return nil
	}
	return &n
}

func (p *Plan) conditions(s *Snapshot, covered []*corev1.Pod) {
	exhausted := metav1.Condition{
		Type:   disruption.ConditionExhausted,
		Status: metav1.ConditionFalse,
		Reason: disruption.ReasonSufficientPods,
	}
	switch {
	case p.Err != nil:
		exhausted.Status = metav1.ConditionTrue
		exhausted.Reason = disruption.ReasonInvalidSpec
		exhausted.Message = p.Err.Error()
	case p.Status.DesiredAvailable > 0 && p.Status.CurrentAvailable <= p.Status.DesiredAvailable:
		exhausted.Status = metav1.ConditionTrue
		exhausted.Reason = disruption.ReasonInsufficientPods
		exhausted.Message = p.unavailable(covered)
	}
	p.set(s, exhausted)
	p.setOrRemove(s, unknown(s, covered))
	conflict := metav1.Condition{
		Type:   disruption.ConditionConflict,
		Status: metav1.ConditionTrue,
		Reason: disruption.ReasonPodsCoveredTwice,
	}
	if s.Shared != "" {
		conflict.Message = fmt.Sprintf("PodUnavailableBudget %s also covers pod %s: a disruption counts against both budgets and either can refuse it", s.Shared, s.SharedPod)
	}
	if !s.SharedUnknown {
		p.setOrRemove(s, conflict)
	}
}

// unavailable names the pods that are not available and have no grant, including pods that leave, and adds how many are not
// there at all.
func (p *Plan) unavailable(covered []*corev1.Pod) string {
	var all []string
	missing := int(p.Status.TotalReplicas)
	for _, pod := range covered {
		if podstate.IsFinished(pod) {
			continue
		}
		missing--
		if why := disruption.Unavailability(pod); why != "" && !disruption.HasEntry(&p.Status, pod) {
			all = append(all, pod.Name+" ("+why+")")
		}
	}
	text := disruption.NamesOf(all)
	if missing > 0 {
		text = strings.TrimPrefix(fmt.Sprintf("%s, %d of %d pods not created", text, missing, p.Status.TotalReplicas), ", ")
	}
	return text
}

// unknown returns the condition for a workload that cannot be read: its pods are not covered, or it is not known how many
// pods it wants.
func unknown(s *Snapshot, covered []*corev1.Pod) metav1.Condition {
	c := metav1.Condition{Type: disruption.ConditionReplicasUnknown, Status: metav1.ConditionTrue}
	for _, w := range s.Workloads {
		switch {
		case w.Unknown == "":
		case len(covered) == 0 && (w.Unknown == disruption.ReasonForbidden || w.Unknown == disruption.ReasonNotServed):
			c.Reason = w.Unknown
			c.Message = fmt.Sprintf("the budget has no effect: the pods of %s could not be listed (%s)", w.Name, w.Message)
			return c
		case protectedTotal(s.Budget) == nil:
			c.Reason = w.Unknown
			c.Message = fmt.Sprintf("the replicas of %s could not be read (%s), so its existing pods are counted; set spec.protectTotalReplicas", w.Name, w.Message)
			return c
		}
	}
	return c
}

func (p *Plan) set(s *Snapshot, c metav1.Condition) {
	c.ObservedGeneration = s.Budget.Generation
	c.LastTransitionTime = metav1.NewTime(s.Now).Rfc3339Copy()
	meta.SetStatusCondition(&p.Status.Conditions, c)
}

// setOrRemove sets a condition with a message, and removes one without.
func (p *Plan) setOrRemove(s *Snapshot, c metav1.Condition) {
	if c.Message == "" {
		meta.RemoveStatusCondition(&p.Status.Conditions, c.Type)
		return
	}
	p.set(s, c)
}

// `tell` notes remarkable values of a new spec.
func (p *Plan) tell(pods int) {
	switch {
	case p.Err != nil:
		p.Notices = append(p.Notices, action.Notice{
			Type:   corev1.EventTypeWarning,
			Reason: disruption.EventLimitFailed,
			Note:   p.Err.Error(),
		})
	case pods == 0:
		p.Notices = append(p.Notices, action.Notice{
			Type:   corev1.EventTypeNormal,
			Reason: disruption.EventNoPods,
			Note:   "the budget covers no pod yet",
		})
	}
}
