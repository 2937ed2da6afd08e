package plan

import (
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/flotilla-project/flotilla/core/contract"
	"github.com/flotilla-project/flotilla/core/plan/action"
	"github.com/flotilla-project/flotilla/core/pods/inplace"
	"github.com/flotilla-project/flotilla/core/pods/newpod"
	"github.com/flotilla-project/flotilla/core/pods/podspec"
	"github.com/flotilla-project/flotilla/core/pods/podstate"
	"github.com/flotilla-project/flotilla/core/workloads/conditions"
	"github.com/flotilla-project/flotilla/core/workloads/podupdate"
	"github.com/flotilla-project/flotilla/core/workloads/revision"

	"github.com/flotilla-project/flotilla/statefulset/api/v1beta1"
	"github.com/flotilla-project/flotilla/statefulset/internal/ordinals"
)

// DefaultPullPolicy is how an absent imagePullPolicy is read, wherever templates are compared or pods are created.
const DefaultPullPolicy = podspec.PullAlways

// Names of the steps of a plan.
const (
	stepOwn      = "own"
	stepRevision = "revision"
	stepRefresh  = "refresh"
	stepCreate   = "create"
	stepDelete   = "delete"
	stepUpdate   = "update"
	stepClaims   = "claims"
	stepHistory  = "history"
)

// rules returns the rules in order of evaluation; the order is part of the specification. A pod gets one action in a
// pass, by the first rule that wants one. Claims come last: a failure of one of them blocks only its own pod.
func rules() []func(*pass) {
	return []func(*pass){
		release,             // pods that the selector no longer matches, or of a foreign name
		adopt,               // orphans that are members, and orphaned revisions
		recordRevision,      // the template as a ControllerRevision
		cancelDeletion,      // pods in PreparingDelete that need not go after all
		refresh,             // updates and lifecycle states that continue by themselves, labels put right; written first
		preDownload,         // images pulled ahead on the nodes of old pods
		scale,               // pods that are missing, ended, or too many
		deleteSpecified,     // the specified-delete label
		update,              // pods of another revision or without their storage
		ownClaims,           // persistentVolumeClaimRetentionPolicy
		createMissingClaims, // claims that pending pods miss
		growClaims,          // claims smaller than their templates
		truncateHistory,     // spec.revisionHistoryLimit
	}
}

// Compute evaluates the rules in order. It never changes the snapshot.
func Compute(s Snapshot) Plan {
	p := newPass(s)
	if s.Set.DeletionTimestamp != nil {
		return p.plan
	}
	for _, think := range rules() {
		think(p)
	}
	for i := range p.pods {
		p.plan.RequeueWithin(p.pods[i].AvailableIn)
	}
	p.plan.Plan = action.Admit(p.plan.Plan)
	p.checkWrittenClaims()
	explain(p) // waits that are reported to the user for the first time
	return p.plan
}

// pod is a pod of the set as one pass sees it.
type pod struct {
	podstate.State
	ordinal    int32
	rank       int  // among the live ordinals
	live       bool // its ordinal runs; else the pod is condemned
	foreign    bool // about to be released or adopted
	updated    bool // at the update revision, or at one with an equal template
	hasVolumes bool // has the volume of every claim template
	inRange    bool // in the range of the update
	deleting   bool // in PreparingDelete
	updating   bool // an in-place update is not complete, though the pod may be in service all the while
	overdue    bool // has waited in vain for resources or restarts of the update revision: it needs a new pod
	touched    bool // has its action in this pass
	refused    bool // its deletion waits, because the server refuses that
	leaving    bool // goes out of service by that action
	claims     claimState
}

// state returns a pod and whether it is at the update revision.
func (p *pass) state(i int) (*podstate.State, bool) { return &p.pods[i].State, p.pods[i].updated }

// serving reports whether the pod is available and stays so, as far as is known.
func (o *pod) serving() bool { return o.Available && o.Active && !o.foreign }

// outOfService reports whether the pod is out of service: an update of it costs nothing.
func (o *pod) outOfService() bool { return !o.serving() || o.leaving }

// countsAsUnavailable reports whether the pod counts against maxUnavailable: it is down, or serves in the middle of a
// change. One with a claim that awaits a mount serves as well as any: it may never get its turn.
func (o *pod) countsAsUnavailable() bool {
	return o.outOfService() || o.updating || o.claims.growing != ""
}

// upToDate reports whether an update has nothing left to do with the pod and its claims.
func (o *pod) upToDate() bool { return !o.needsUpdate() && len(o.claims.toGrow) == 0 }

// needsUpdate reports whether an update has to change or replace the pod itself.
func (o *pod) needsUpdate() bool {
	return !o.updated || o.overdue || !o.hasVolumes || o.claims.needsRemount
}

// slot is an ordinal that runs, with its pod, if there is one.
type slot struct {
	ordinal int32
	rank    int
	pod     *pod
	held    bool // its pod cannot be created for want of a claim
}

// pass is the working state of one computation.
type pass struct {
	Snapshot
	plan        Plan
	numbers     numbers
	workload    podupdate.Workload
	pods        []pod           // members, ascending
	nonMembers  []*corev1.Pod   // owned, and no members
	slots       []slot          // live ordinals, ascending, but for missing ones beyond maxEmpty
	live        ordinals.Live   // the ordinals that run; not known with an invalid spec
	missing     int             // live ordinals without a pod
	condemned   []*pod          // descending
	targets     []*pod          // the range of the update, in its order
	claimless   []claimless     // missing pods for which a claim is missing that nothing makes
	oldPods     int             // live pods not at the update revision, planned ones included
	resizes     action.Step     // claims to grow
	retentions  []action.Action // claims to take from former pods
	claimsFirst bool            // pods wait until their claims are written
}

func newPass(s Snapshot) *pass {
	p := &pass{Snapshot: s, resizes: action.Step{Name: stepClaims}}
	var reserved ordinals.Reserved
	p.plan.Plan = action.Plan{
		Refusals:     s.Refusals,
		Now:          s.Now,
		RefusedVerbs: refusedVerbs(s.Set),
	}
	p.numbers, reserved, p.plan.Err = readNumbers(s.Set, s.FeatureGates)
	if err := newpod.CheckSelector(s.Set.Spec.Selector); err != nil {
		p.plan.Err = err
	}
	p.plan.MaxUnavailable = int32(p.numbers.maxUnavailable)
	options := inplace.Options{
		DefaultPullPolicy: DefaultPullPolicy,
		EnvFromMetadata:   s.FeatureGates.EnvFromMetadata,
		Resize:            s.FeatureGates.Resize,
		KeepMemoryLimits:  s.FeatureGates.KeepMemoryLimits,
	}
	p.workload = podupdate.Workload{
		Revisions:     podupdate.NewRevisions(slices.Concat(s.Revisions, s.OrphanRevisions), options),
		Policy:        podupdate.Policy(rollingUpdate(s.Set).PodUpdatePolicy),
		Lifecycle:     s.Set.Spec.Lifecycle,
		GraceSeconds:  inPlaceStrategy(s.Set).GracePeriodSeconds,
		Labels:        revision.Labels,
		MissingLabels: p.missingLabels,
		Now:           s.Now,
		Plan:          &p.plan.Plan,
	}
	p.workload.ResizeDeadlineSeconds = inPlaceStrategy(s.Set).ResizeDeadlineSeconds
	if p.observed == nil {
		p.observed = p.observe()
	}
	p.pods = slices.Clone(p.observed.pods)
	p.nonMembers = p.observed.nonMembers
	p.plan.RequeueWithin(p.observed.requeueAfter)
	p.assignOrdinals(reserved)
	p.oldPods = p.countOldPods()
	p.selectTargets()
	return p
}

// refusedVerbs are the verbs of actions that the server refused, as the status shows.
func refusedVerbs(set *v1beta1.StatefulSet) []action.Verb {
	return conditions.RefusedVerbs(set.Status.Conditions, v1beta1.StatefulSetFailedCreatePod, v1beta1.StatefulSetFailedUpdatePod)
}

// observed are the states of the pods in a snapshot.
type observed struct {
	pods         []pod         // members, ascending
	nonMembers   []*corev1.Pod // owned, and no members
	requeueAfter time.Duration // until a state changes by itself; zero for never
}

// Observed returns the snapshot with the states of its pods, so that Compute and Status derive them once. Pods that the snapshot
// gets later are not seen: it is the last step of filling it.
func (s Snapshot) Observed() Snapshot {
	s.observed = newPass(s).observed
	return s
}

// observe derives the states of the pods.
func (p *pass) observe() *observed {
	found := &observed{pods: make([]pod, 0, len(p.Pods)+len(p.Orphans))}
	for _, o := range p.Pods {
		ordinal, ok := ordinalOf(p.Set.Name, o.Name)
		if !ok {
			found.nonMembers = append(found.nonMembers, o)
			continue
		}
		found.pods = append(found.pods, p.inspect(o, ordinal))
	}
	for _, o := range p.Orphans {
		if ordinal, ok := ordinalOf(p.Set.Name, o.Name); ok {
			adopted := p.inspect(o, ordinal)
			adopted.foreign = true
			found.pods = append(found.pods, adopted)
		}
	}
	slices.SortStableFunc(found.pods, func(a, b pod) int { return int(int64(a.ordinal) - int64(b.ordinal)) })
	found.pods = slices.CompactFunc(found.pods, func(a, b pod) bool { return a.ordinal == b.ordinal })
	found.requeueAfter = p.plan.RequeueAfter
	return found
}

// inspect derives the state of a pod of the set.
func (p *pass) inspect(o *corev1.Pod, ordinal int32) pod {
	state := podstate.Of(o, p.Now, p.numbers.minReady)
	updated := p.hasUpdateTemplate(state.Revision)
	return pod{
		State:      state,
		ordinal:    ordinal,
		updated:    updated,
		overdue:    updated && state.Active && p.workload.Overdue(state),
		claims:     p.inspectClaims(state, updated),
		hasVolumes: hasStorage(o, p.Set.Spec.VolumeClaimTemplates),
		deleting:   state.Lifecycle == contract.LifecyclePreparingDelete,
	}
}

// hasUpdateTemplate reports whether the revision with the short hash is the update revision or has an equal
// template, as one has that a built-in StatefulSet left behind.
func (p *pass) hasUpdateTemplate(hash string) bool {
	return p.workload.Revisions.HasTemplate(hash, p.Chosen.Update)
}
