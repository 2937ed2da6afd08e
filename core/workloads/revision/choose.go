package revision

import (
	"cmp"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/flotilla-project/flotilla/core/contract"
	"github.com/flotilla-project/flotilla/core/pods/podspec"
	"github.com/flotilla-project/flotilla/core/pods/podstate"
)

// Input is the input of Choose. All of it is read-only.
type Input struct {
	// Owner is the workload and Kind its kind.
	Owner metav1.Object
	Kind  schema.GroupVersionKind
	// Template is the workload's present template.
	Template *corev1.PodTemplateSpec
	// DefaultPullPolicy decides how a container without imagePullPolicy is read.
	DefaultPullPolicy podspec.DefaultPullPolicy
	// Same overrides the comparison of a stored template with Template, for callers that know the
	// defaults of the cluster. Nil is podspec.Equal with DefaultPullPolicy.
	Same func(stored, present *corev1.PodTemplateSpec) bool
	// HashLabel is the label that a new revision's hash stands in. Empty means contract.RevisionHashLabel; DaemonSets
	// use contract.RevisionLabel.
	HashLabel string
	// ClaimsHash is ClaimsHash of the present claim templates; nil for kinds that record none.
	ClaimsHash *string
	// Owned are the revisions that the workload controls, in any order. Ones that cannot be decoded are
	// never chosen as Update.
	Owned []*appsv1.ControllerRevision
	// Orphans are revisions without a controller that the workload's selector matches. They are chosen
	// where no owned one would be.
	Orphans []*appsv1.ControllerRevision
	// Current is status.currentRevision, the name of a revision.
	Current string
	// CollisionCount is status.collisionCount.
	CollisionCount int32
	// Lookup finds any revision of the workload's namespace by name and returns nil when there is none; it sees names that
	// others have taken. A nil Lookup finds none.
	Lookup func(name string) *appsv1.ControllerRevision
}

// Choice is the result of Choose.
type Choice struct {
	// Update is the revision of the template; one that exists, unless Create is true.
	Update *appsv1.ControllerRevision
	// Current is the revision named by Input.Current, or Update when there is no such revision.
	Current *appsv1.ControllerRevision
	// Create is true if Update is yet to be created.
	Create bool
	// Renumber is true if the number of Update is to be raised to Number, since it is older than
	// another revision: the template went back to a former one.
	Renumber bool
	// Number is the number that Update has when all this is done.
	Number int64
	// CollisionCount is the status.collisionCount with which Update was found.
	CollisionCount int32
	// ClaimsHash is the ClaimsHash of Input; empty for kinds that record none.
	ClaimsHash string
	// SetClaimsHash is true if Update, which is raised, is to get ClaimsHash.
	SetClaimsHash bool
}

// Status writes the current and the wanted revision into a status, and the count of collisions. Values that were not
// found stay as they are.
func (c Choice) Status(current, update *string, collisions **int32) {
	if c.Update != nil {
		*update, *collisions = c.Update.Name, &c.CollisionCount
	}
	if c.Current != nil {
		*current = c.Current.Name
	}
}

// Choose finds the revision of the workload's template: the newest one when its template is equal,
// else the newest of the older ones that are equal, which is raised, else an orphan in the same way,
// else a new one. An orphan that is chosen is for the caller to adopt.
func Choose(in Input) (Choice, error) {
	if in.Same == nil {
		in.Same = func(stored, present *corev1.PodTemplateSpec) bool {
			return podspec.Equal(stored, present, in.DefaultPullPolicy)
		}
	}
	sorted := slices.SortedFunc(slices.Values(in.Owned), compare)
	all := slices.SortedFunc(slices.Values(slices.Concat(in.Owned, in.Orphans)), compare)
	choice := Choice{CollisionCount: in.CollisionCount, Number: 1}
	if in.ClaimsHash != nil {
		choice.ClaimsHash = *in.ClaimsHash
	}
	for _, candidates := range [][]*appsv1.ControllerRevision{sorted, all} {
		if len(candidates) > 0 {
			choice.Number = candidates[len(candidates)-1].Revision + 1
		}
		if choice.takeEqual(in, candidates) {
			break
		}
	}
	if choice.Update == nil {
		if err := choice.make(in); err != nil {
			return Choice{}, err
		}
	}
	choice.Current = choice.Update
	for _, r := range all {
		if podstate.ShortHash(in.Current) != "" && Hash(r) == podstate.ShortHash(in.Current) {
			choice.Current = r
		}
	}
	return choice, nil
}

// takeEqual takes the newest of the candidates, sorted from old to new, that holds the template.
func (c *Choice) takeEqual(in Input, candidates []*appsv1.ControllerRevision) bool {
	for i, r := range slices.Backward(candidates) {
		if in.holds(r) {
			c.take(r, i == len(candidates)-1, in.ClaimsHash)
			return true
		}
	}
	return false
}

// take uses a revision that exists.
func (c *Choice) take(r *appsv1.ControllerRevision, newest bool, claimsHash *string) {
	c.Update = r
	if newest {
		c.Number = r.Revision
		return
	}
	c.Renumber = true
	if claimsHash != nil {
		recorded, set := r.Annotations[contract.VolumeClaimTemplateHashAnnotation]
		c.SetClaimsHash = !set || recorded != *claimsHash
	}
}

// make builds a revision under the first name that is free. One that exists under such a name, holds an equal template
// and belongs to no other owner is ours: the caches were behind.
func (c *Choice) make(in Input) error {
	for {
		r, err := New(in.Owner, in.Kind, in.Template, c.Number, c.CollisionCount)
		if err != nil {
			return err
		}
		taken := in.lookup(r.Name)
		if taken == nil {
			c.Update, c.Create = r, true
			if in.HashLabel != "" {
				delete(r.Labels, contract.RevisionHashLabel)
				r.Labels[in.HashLabel] = Hash(r)
			}
			if in.ClaimsHash != nil {
				metav1.SetMetaDataAnnotation(&r.ObjectMeta, contract.VolumeClaimTemplateHashAnnotation, *in.ClaimsHash)
			}
			return nil
		}
		if in.mayTake(taken) && in.holds(taken) {
			c.take(taken, taken.Revision >= c.Number, in.ClaimsHash)
			return nil
		}
		c.CollisionCount++
	}
}

func (in *Input) lookup(name string) *appsv1.ControllerRevision {
	if in.Lookup == nil {
		return nil
	}
	return in.Lookup(name)
}

func (in *Input) mayTake(r *appsv1.ControllerRevision) bool {
	controller := metav1.GetControllerOf(r)
	return controller == nil || controller.UID == in.Owner.GetUID()
}

func (in *Input) holds(r *appsv1.ControllerRevision) bool {
	stored, err := Template(r)
	return err == nil && in.Same(stored, in.Template)
}

// compare orders revisions from old to new: by number, then by creation, then by name.
func compare(a, b *appsv1.ControllerRevision) int {
	return cmp.Or(
		cmp.Compare(a.Revision, b.Revision),
		a.CreationTimestamp.Compare(b.CreationTimestamp.Time),
		cmp.Compare(a.Name, b.Name),
	)
}

// beyondLimit is which of the owned revisions are to be deleted so that at most limit of those not live
// remain, the oldest first. live holds the short hashes of the current and the update revision and of
// every revision that an active pod carries. A negative limit is 0.
func beyondLimit(owned []*appsv1.ControllerRevision, live map[string]bool, limit int32) []*appsv1.ControllerRevision {
	var idle []*appsv1.ControllerRevision
	for _, r := range owned {
		if !live[Hash(r)] && r.DeletionTimestamp == nil {
			idle = append(idle, r)
		}
	}
	slices.SortFunc(idle, compare)
	return idle[:max(len(idle)-int(max(limit, 0)), 0)]
}
