package plan

import (
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/flotilla-project/flotilla/core/api/workload"
	"github.com/flotilla-project/flotilla/core/contract"
	"github.com/flotilla-project/flotilla/core/plan/action"
	"github.com/flotilla-project/flotilla/core/pods/inplace"
	"github.com/flotilla-project/flotilla/core/pods/newpod"
	"github.com/flotilla-project/flotilla/core/pods/podspec"
	"github.com/flotilla-project/flotilla/core/pods/podstate"
	"github.com/flotilla-project/flotilla/core/workloads/conditions"
	"github.com/flotilla-project/flotilla/core/workloads/podupdate"

	"github.com/flotilla-project/flotilla/cloneset/api/v1beta1"
)

// DefaultPullPolicy is how an absent imagePullPolicy is read, wherever templates are compared or pods are created.
const DefaultPullPolicy = podspec.PullAlways

// Names of the steps of a plan.
const (
	stepOwn      = "own"
	stepRevision = "revision"
	stepClaims   = "claims"
	stepRefresh  = "refresh"
	stepScale    = "scale"
	stepUpdate   = "update"
	stepHistory  = "history"
	stepNames    = "names"
)

// rule is one rule of a plan.
type rule struct {
	apply func(*pass)
	// endsPass ends the pass when the rule wants something.
	endsPass bool
}

// rules returns the rules in order of evaluation; the order is part of the specification.
func rules() []rule {
	return []rule{
		{release, false},             // pods that the selector no longer matches
		{adopt, false},               // orphans that it matches
		{adoptRevisions, false},      // those that orphaned pods or an orphaning deletion have left
		{recordRevision, false},      // the template as a ControllerRevision
		{deleteUnusedClaims, false},  // claims without a pod, when claims are not reused
		{refresh, false},             // updates and lifecycle states that continue by themselves; written first
		{preDownload, false},         // images pulled ahead on the nodes of old pods
		{cancelDeletion, true},       // pods in PreparingDelete that need not go after all
		{warnAboutFailedPods, false}, // pods in phase Failed, which others replace
		{limitFailedPods, false},     // of which only some stay
		{deleteSpecifiedFirst, true}, // while pods cannot be created, these and updates do not wait for them
		{updateFirst, true},
		{scaleOut, true},            // spec.replicas, maxSurge and scaleStrategy.maxUnavailable
		{pause, true},               // pods that a hook has released for an update that is paused
		{finishDeletion, true},      // pods in PreparingDelete that a hook has released
		{deleteSpecifiedLast, true}, // podsToDelete and the specified-delete label
		{scaleIn, true},             // too many pods
		{updateLast, true},          // pods of the other revision
		{truncateHistory, false},    // spec.revisionHistoryLimit
		{truncateNames, false},      // podsToDelete that are gone
	}
}

// Compute evaluates the rules in order. It never changes the snapshot.
func Compute(s Snapshot) Plan {
	p := newPass(s)
	if s.Set.DeletionTimestamp != nil {
		return p.plan
	}
	endsEarly := false
	for _, r := range rules() {
		before := len(p.plan.Steps)
		r.apply(p)
		if endsEarly = r.endsPass && p.plan.WantsSince(before); endsEarly {
			break
		}
	}
	p.takeClaimsBack()
	for i := range p.pods {
		p.plan.RequeueWithin(p.pods[i].AvailableIn)
	}
	p.plan.RequeueWithin(untilDeadline(s))
	p.plan.Plan = action.Admit(p.plan.Plan)
	if endsEarly {
		p.plan.DeferUnreached(p.statusSays)
	}
	warnAboutDeadline(s, &p.plan)
	return p.plan
}

// statusSays reports whether a condition of the status is this message.
func (p *pass) statusSays(message string) bool {
	return slices.ContainsFunc(p.Set.Status.Conditions, func(c workload.Condition) bool { return c.Message == message })
}

// pod is an active pod of the set as one pass sees it.
type pod struct {
	podstate.State
	updated   bool // at the update revision
	deleting  bool // in PreparingDelete
	specified bool // named in podsToDelete or labelled, and not yet in PreparingDelete
	updating  bool // an in-place update is not complete, though the pod may be in service all the while
	overdue   bool // has waited in vain for resources or restarts of the update revision: it needs a new pod
	touched   bool // already changed in this pass
}

// serving reports whether deleting the pod now would take a ready pod away. minReadySeconds does not count.
func (p *pod) serving() bool { return p.Ready && p.Lifecycle == contract.LifecycleNormal }

// state returns a pod and whether it is at the update revision.
func (p *pass) state(i int) (*podstate.State, bool) { return &p.pods[i].State, p.pods[i].updated }

// pass is the working state of one computation.
type pass struct {
	Snapshot
	plan      Plan
	numbers   numbers
	balance   *balance             // nil before it is asked for
	pods      []pod                // active
	inactive  []podstate.State     // terminating, succeeded, failed
	named     map[string]bool      // podsToDelete
	revisions *podupdate.Revisions // templates and how they differ
	updates   podupdate.Workload   // how pods are changed
	rng       *rand.Rand
	usedIDs   map[string]bool // instance ids, nil before they are asked for
	reusable  []string        // ids of claims without a pod, nil before they are asked for
	takenIDs  map[string]bool // instance ids of pods, nil before they are asked for
	index     *claimIndex     // claims and their pods, nil before they are asked for
	claimless []string        // volumes of missing pods for which no claim is there that nothing makes
	handovers []action.Action // claims that are given to pods about to leave
	adopting  bool            // pods are taken in this pass
}

func newPass(s Snapshot) *pass {
	p := &pass{
		Snapshot: withClaimsHash(s),
		named:    map[string]bool{},
		rng:      rand.New(rand.NewPCG(s.Seed, s.Seed)), //nolint:gosec // ids need no secrecy
	}
	p.plan.Plan = action.Plan{
		Refusals:     s.Refusals,
		Now:          s.Now,
		RefusedVerbs: refusedVerbs(s.Set),
	}
	p.numbers, p.plan.Err = readNumbers(s.Set)
	if err := newpod.CheckSelector(s.Set.Spec.Selector); err != nil {
		p.plan.Err = err
	}
	p.plan.MaxUnavailable = p.numbers.maxUnavailable
	p.revisions = podupdate.NewRevisions(slices.Concat(s.Revisions, s.OrphanRevisions), inplace.Options{
		DefaultPullPolicy: DefaultPullPolicy,
		EnvFromMetadata:   s.FeatureGates.EnvFromMetadata,
		CompareClaims:     comparesClaims(s.FeatureGates.RecreateOnClaimChange, p.policy()),
		Resize:            s.FeatureGates.Resize,
		KeepMemoryLimits:  s.FeatureGates.KeepMemoryLimits,
	})
	p.updates = podupdate.Workload{
		Revisions:             p.revisions,
		Policy:                p.policy(),
		Lifecycle:             s.Set.Spec.Lifecycle,
		GraceSeconds:          inPlaceStrategy(s.Set).GracePeriodSeconds,
		ResizeDeadlineSeconds: inPlaceStrategy(s.Set).ResizeDeadlineSeconds,
		Labels:                p.revisionLabels,
		MissingLabels:         missingTemplateHash,
		Now:                   s.Now,
		Plan:                  &p.plan.Plan,
	}
	for _, name := range s.Set.Spec.ScaleStrategy.PodsToDelete {
		p.named[name] = true
	}
	if p.observed == nil {
		p.observed = p.observe()
	}
	p.pods = slices.Clone(p.observed.pods)
	p.inactive = p.observed.inactive
	p.plan.RequeueWithin(p.observed.requeueAfter)
	return p
}

// observed are the states of the pods in a snapshot.
type observed struct {
	pods         []pod            // active, by age
	inactive     []podstate.State // terminating, succeeded, failed
	requeueAfter time.Duration    // until a state changes by itself; zero for never
}

// Observed returns the snapshot with the states of its pods, so that Compute and Status derive them once. Pods that the snapshot
// gets later are not seen: it is the last step of filling it.
func (s Snapshot) Observed() Snapshot {
	s.observed = newPass(s).observed
	return s
}

// observe derives the states of the pods.
func (p *pass) observe() *observed {
	found := &observed{pods: make([]pod, 0, len(p.Pods))}
	ordered := slices.Clone(p.Pods)
	slices.SortFunc(ordered, func(a, b *corev1.Pod) int {
		if c := a.CreationTimestamp.Compare(b.CreationTimestamp.Time); c != 0 {
			return c
		}
		return strings.Compare(a.Name, b.Name)
	})
	for _, o := range ordered {
		if o := p.inspect(o); o.Active {
			found.pods = append(found.pods, o)
		} else {
			found.inactive = append(found.inactive, o.State)
		}
	}
	found.requeueAfter = p.plan.RequeueAfter
	return found
}

// inspect derives the state of a pod of the set.
func (p *pass) inspect(o *corev1.Pod) pod {
	state := podstate.Of(o, p.Now, p.Set.Spec.MinReadySeconds)
	deleting := state.Lifecycle == contract.LifecyclePreparingDelete
	updated := p.Chosen.Update != nil && state.Revision != "" && state.Revision == podstate.ShortHash(p.Chosen.Update.Name)
	return pod{
		State:     state,
		updated:   updated,
		overdue:   updated && state.Active && p.updates.Overdue(state),
		deleting:  deleting,
		specified: !deleting && (state.SpecifiedDelete || p.named[o.Name]),
	}
}

// refusedVerbs are the verbs of actions that the server refused, as the status shows.
func refusedVerbs(set *v1beta1.CloneSet) []action.Verb {
	return conditions.RefusedVerbs(set.Status.Conditions, v1beta1.CloneSetFailedScale, v1beta1.CloneSetFailedUpdate)
}

// comparesClaims reports whether another claim template is a reason to recreate pods.
func comparesClaims(recreateOnClaimChange bool, policy podupdate.Policy) bool {
	return recreateOnClaimChange && policy != podupdate.InPlaceOnly
}

// liveHashes are the short hashes of the revisions that must be kept: current, update and the revisions of active
// pods.
func (p *pass) liveHashes() map[string]bool {
	hashes := make([]string, len(p.pods))
	for i := range p.pods {
		hashes[i] = p.pods[i].Revision
	}
	return p.LiveRevisions(hashes)
}
