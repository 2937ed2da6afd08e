package plan

import (
	"cmp"
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/flotilla-project/flotilla/core/plan/action"
	"github.com/flotilla-project/flotilla/core/pods/podstate"

	"github.com/flotilla-project/flotilla/spread/api/v1beta1"
	"github.com/flotilla-project/flotilla/spread/internal/subsets"
)

// Plan is the result of one pass over a WorkloadSpread.
type Plan struct {
	action.Plan
	// Status is the next status.
	Status *v1beta1.WorkloadSpreadStatus

	made *computation
}

// Compute makes the plan of one pass. It never changes the snapshot.
//
// Actions that admission must know first wait for the next pass, which finds them in the status: a pod that was created
// after the spread, and has no subset, takes a place before it is marked; a subset is closed before the pods are deleted
// that it cannot have.
func Compute(s Snapshot) Plan {
	c := computation{
		Snapshot: s,
		limits:   subsets.Limits(s.Spread, s.Target.Replicas),
		plan:     Plan{Plan: action.Plan{Refusals: s.Refusals, Now: s.Now}},
	}
	c.sort()
	c.adopt()
	c.plan.Add(action.Step{Name: "mark", Actions: c.marks()})
	c.plan.Add(action.Step{Name: "release", Actions: releases(s.Left, &action.Event{Failed: EventCostFailed}, c.now())})
	c.reschedule()
	c.report()
	if s.Target.Unknown != nil {
		c.plan.Notices = append(c.plan.Notices, unread(s.Target.Unknown))
	}
	c.plan.Plan = action.Admit(c.plan.Plan)
	c.plan.made = &c
	return c.plan
}

// Renew returns the next status and the notices for a newer version of the spread: admission has taken places since. The
// pods are counted as they were. It returns nil if more than the status must be planned again.
func (p Plan) Renew(newer *v1beta1.WorkloadSpread) (*v1beta1.WorkloadSpreadStatus, []action.Notice) {
	c := *p.made
	if newer.UID != c.Spread.UID || newer.Generation != c.Spread.Generation || newer.DeletionTimestamp != nil {
		return nil, nil
	}
	c.Spread = newer
	c.plan = Plan{}
	c.groups = maps.Clone(c.groups)
	c.reserved = nil // the places that were free may be taken: the next pass looks again
	c.addReserving()
	c.report()
	return c.plan.Status, c.plan.Notices
}

// Unread is the plan of a pass that could not read the target, and that is to be repeated.
func Unread(err error, again time.Duration) action.Plan {
	p := action.Plan{Notices: []action.Notice{unread(err)}}
	p.RequeueWithin(again)
	return p
}

func unread(err error) action.Notice {
	return action.Notice{
		Type:   corev1.EventTypeWarning,
		Reason: EventTargetUnknown,
		Note:   err.Error(),
	}
}

// computation is a plan in the making.
type computation struct {
	Snapshot
	limits   []int32
	groups   map[string]*group
	strays   []*corev1.Pod // active pods without a subset that were there before the spread and cannot get one
	loose    []*corev1.Pod // active pods that are in no subset yet
	adopted  map[*corev1.Pod]int
	reserved []reservation
	kept     *corev1.Pod                       // one that is not deleted although it cannot be scheduled, nil for none
	ledgers  map[string][]v1beta1.SubsetStatus // as they were read, by version
	plan     Plan
}

// group are the pods of one version.
type group struct {
	version  string
	subsets  [][]*corev1.Pod        // the active ones, by subset
	replicas []int32                // of them those that count
	seen     map[string]*corev1.Pod // by the ids of their places
	noted    map[string]bool        // active ones that have a place by its note, and do not carry the mark yet, by name
}

// add adds an active pod that counts.
func (g *group) add(subset int, pod *corev1.Pod) {
	g.subsets[subset] = append(g.subsets[subset], pod)
	g.replicas[subset]++
}

// reservation is a place for a pod that is to be adopted.
type reservation struct {
	version string
	subset  int
	pod     string
}

func (c *computation) group(version string) *group {
	g := c.groups[version]
	if g == nil {
		g = &group{
			version:  version,
			subsets:  make([][]*corev1.Pod, len(c.limits)),
			replicas: make([]int32, len(c.limits)),
			seen:     map[string]*corev1.Pod{},
			noted:    map[string]bool{},
		}
		c.groups[version] = g
	}
	return g
}

// known returns the entries of a version as they were read. They must not be changed.
func (c *computation) known(version string) []v1beta1.SubsetStatus {
	list, ok := c.ledgers[version]
	if !ok {
		list = subsets.Entries(c.Spread, c.Spread.Status.VersionedSubsetStatuses[version])
		c.ledgers[version] = list
	}
	return list
}

// versions are the versions in a fixed order.
func (c *computation) versions() []string { return slices.Sorted(maps.Keys(c.groups)) }

// sort assigns the pods to versions and subsets.
func (c *computation) sort() {
	c.groups = map[string]*group{}
	c.adopted = map[*corev1.Pod]int{}
	c.ledgers = map[string][]v1beta1.SubsetStatus{}
	pods := slices.Clone(c.Pods)
	slices.SortFunc(pods, func(a, b *corev1.Pod) int {
		return cmp.Or(a.CreationTimestamp.Compare(b.CreationTimestamp.Time), cmp.Compare(a.Name, b.Name))
	})
	for _, pod := range pods {
		g := c.group(c.version(pod))
		match, ok := subsets.MatchOf(pod)
		mine := ok && match.Name == c.Spread.Name
		if mine || !podstate.IsActive(pod) {
			g.seen[cmp.Or(match.UID, pod.Name)] = pod
		}
		switch i := subsets.Index(c.Spread, match.Subset); {
		case !podstate.IsActive(pod):
		case mine && i >= 0:
			g.add(i, pod)
		case mine:
			c.strays = append(c.strays, pod)
		default:
			c.loose = append(c.loose, pod)
		}
	}
	c.addReserving()
	if len(c.groups) == 0 {
		c.group(cmp.Or(c.Target.Latest, v1beta1.VersionIgnored))
	}
}

// addReserving adds the versions that have places under way.
func (c *computation) addReserving() {
	for version, list := range c.Spread.Status.VersionedSubsetStatuses {
		if slices.ContainsFunc(list, func(s v1beta1.SubsetStatus) bool { return len(s.CreatingPods)+len(s.DeletingPods) > 0 }) {
			c.group(version)
		}
	}
}

func (c *computation) version(pod *corev1.Pod) string {
	return subsets.VersionAmong(c.Target.Versions, pod, c.Target.Versioned)
}

func (c *computation) now() metav1.Time { return metav1.NewTime(c.Now) }
