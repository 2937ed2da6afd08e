package plan

import (
	"errors"
	"math/rand/v2"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/flotilla-project/flotilla/core/contract"
	"github.com/flotilla-project/flotilla/core/plan/action"
	"github.com/flotilla-project/flotilla/core/pods/inplace"
	"github.com/flotilla-project/flotilla/core/pods/newpod"
	"github.com/flotilla-project/flotilla/core/pods/podspec"
	"github.com/flotilla-project/flotilla/core/workloads/conditions"
	"github.com/flotilla-project/flotilla/core/workloads/podupdate"

	"github.com/flotilla-project/flotilla/daemonset/api/v1beta1"
)

// DefaultPullPolicy is how an absent imagePullPolicy is read, wherever templates are compared: as the server reads it.
const DefaultPullPolicy = podspec.ServerDefault

// Names of the steps of a plan.
const (
	stepOwn      = "own"
	stepRevision = "revision"
	stepRefresh  = "refresh"
	stepDelete   = "delete"
	stepCreate   = "create"
	stepUpdate   = "update"
	stepHistory  = "history"
)

// errSelectsAll means that every pod of the namespace would be one of the set.
var errSelectsAll = errors.New("this daemon set is selecting all pods, a non-empty selector is required")

// rules returns the rules in order of evaluation; the order is part of the specification. A pod gets one action in a
// pass, by the first rule that wants one.
func rules() []func(*pass) {
	return []func(*pass){
		release,         // pods that the selector no longer matches
		adopt,           // orphans that it matches, and orphaned revisions
		recordRevision,  // the template as a ControllerRevision
		cancelDeletion,  // pods in PreparingDelete that need not go after all
		refresh,         // updates that continue by themselves, readiness gates, labels put right; written first
		preDownload,     // images pulled ahead on the nodes of old pods
		manage,          // which nodes have a pod: too few, too many, ended, on the wrong node
		deleteSpecified, // the specified-delete label
		update,          // pods of another revision
		truncateHistory, // spec.revisionHistoryLimit
	}
}

// Compute evaluates the rules in order. It never changes the snapshot.
func Compute(s Snapshot) Plan {
	p := newPass(s)
	if s.Set.DeletionTimestamp != nil {
		return p.plan
	}
	if !p.selectsAll() {
		for _, think := range rules() {
			think(p)
		}
		for i := range p.pods {
			p.plan.RequeueWithin(p.pods[i].AvailableIn)
		}
	}
	p.plan.Plan = action.Admit(p.plan.Plan)
	explain(p) // states that are reported to the user for the first time
	return p.plan
}

// pass is the working state of one computation.
type pass struct {
	Snapshot
	plan       Plan
	numbers    numbers
	workload   podupdate.Workload
	pods       []pod
	places     []place                    // by name, ascending
	desired    int                        // places that should run a pod
	takingPart int                        // places that count in updates
	current    string                     // hash of the revision that was rolled out to all nodes last
	former     *appsv1.ControllerRevision // that nodes out of range return to; nil where they do not
	inRange    []*place                   // where updates happen, in their order
	left       allowance
	creates    action.Step // all new pods
	rng        *rand.Rand
	takenNames map[string]bool // nil before it is asked for
}

func newPass(s Snapshot) *pass {
	p := &pass{
		Snapshot: s,
		rng:      rand.New(rand.NewPCG(s.Seed, s.Seed)), //nolint:gosec // names need no secrecy
	}
	p.plan.Plan = action.Plan{
		Refusals:     s.Refusals,
		Now:          s.Now,
		RefusedVerbs: refusedVerbs(s.Set),
	}
	revisions := podupdate.NewRevisions(slices.Concat(s.Revisions, s.OrphanRevisions), inplace.Options{
		DefaultPullPolicy: DefaultPullPolicy,
		EnvFromMetadata:   s.FeatureGates.EnvFromMetadata,
		Resize:            s.FeatureGates.Resize,
		KeepMemoryLimits:  s.FeatureGates.KeepMemoryLimits,
	})
	revisions.ShortNames = true
	p.workload = podupdate.Workload{
		Revisions:     revisions,
		Policy:        podupdate.ReCreate,
		Labels:        p.revisionLabels,
		MissingLabels: p.missingLabels,
		Now:           s.Now,
		Plan:          &p.plan.Plan,
	}
	if rollingUpdate(s.Set).RollingUpdateType == v1beta1.InPlaceRollingUpdateType {
		p.workload.Policy = podupdate.InPlaceIfPossible
		p.workload.SameNode = true
		p.workload.ResizeDeadlineSeconds = inPlaceStrategy(s.Set).ResizeDeadlineSeconds
	}
	if p.observed == nil {
		p.observed = p.observe()
	}
	p.pods = slices.Clone(p.observed.pods)
	p.plan.RequeueWithin(p.observed.requeueAfter)
	p.findPlaces()
	p.placePods()
	p.numbers, p.plan.Err = readNumbers(s.Set, p.desired, p.countTakingPart())
	if err := newpod.CheckSelector(s.Set.Spec.Selector); err != nil {
		p.plan.Err = err
	}
	p.plan.MaxUnavailable = int32(p.numbers.maxUnavailable)
	if p.selectsAll() {
		p.plan.Err = errSelectsAll
	}
	p.creates = action.Step{Name: stepCreate, SlowStart: true}
	p.left = allowance{
		creations: min(p.numbers.burst, action.MaxCreates),
		deletions: p.numbers.burst,
		inPlace:   p.numbers.burst,
	}
	p.current = p.currentRevision()
	p.selectRange()
	return p
}

// selectsAll reports whether the selector is the empty one.
func (p *pass) selectsAll() bool {
	s := p.Set.Spec.Selector
	return s == nil || len(s.MatchLabels)+len(s.MatchExpressions) == 0
}

// refusedVerbs are the verbs of actions that the server refused, as the status shows.
func refusedVerbs(set *v1beta1.DaemonSet) []action.Verb {
	return conditions.RefusedVerbs(set.Status.Conditions, v1beta1.DaemonSetFailedCreatePod, v1beta1.DaemonSetFailedUpdatePod)
}

// readinessGates are the readiness gates of new pods. A pod that is never updated in place needs no readiness gate of
// updates.
func (p *pass) readinessGates() []corev1.PodConditionType {
	if p.workload.Policy.InPlace() {
		return []corev1.PodConditionType{contract.InPlaceUpdateReady, contract.KruisePodReady}
	}
	return []corev1.PodConditionType{contract.KruisePodReady}
}
