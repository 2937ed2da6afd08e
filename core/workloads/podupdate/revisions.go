package podupdate

import (
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/flotilla-project/flotilla/core/contract"
	"github.com/flotilla-project/flotilla/core/pods/inplace"
	"github.com/flotilla-project/flotilla/core/pods/podspec"
	"github.com/flotilla-project/flotilla/core/pods/podstate"
	"github.com/flotilla-project/flotilla/core/workloads/revision"
)

// Revisions knows the revisions of one workload for one pass: each template is decoded once, each
// difference taken once. It is not safe for concurrent use.
type Revisions struct {
	// ShortNames records revisions on pods by their short hashes instead of their names.
	ShortNames bool

	known     []*appsv1.ControllerRevision
	options   inplace.Options
	templates map[string]*corev1.PodTemplateSpec // by the name of the revision
	paths     map[revisionPair]updatePath
	same      map[revisionPair]bool
}

// revisionPair is the short hash of the revision that an update path begins at and the name of the one it leads to.
type revisionPair struct{ from, to string }

// updatePath is the way of a pod of one revision to another.
type updatePath struct {
	update *inplace.Update
	err    error // why not in place
}

// NewRevisions makes the memory of one pass over the revisions that the workload owns.
func NewRevisions(owned []*appsv1.ControllerRevision, o inplace.Options) *Revisions {
	return &Revisions{
		known:     owned,
		options:   o,
		templates: map[string]*corev1.PodTemplateSpec{},
		paths:     map[revisionPair]updatePath{},
		same:      map[revisionPair]bool{},
	}
}

// Template is the template of a revision, read-only.
func (r *Revisions) Template(of *appsv1.ControllerRevision) (*corev1.PodTemplateSpec, error) {
	if t, ok := r.templates[of.Name]; ok {
		return t, nil
	}
	t, err := revision.Template(of)
	if err != nil {
		return nil, fmt.Errorf("read template of revision %s: %w", of.Name, err)
	}
	r.templates[of.Name] = t
	return t, nil
}

// HasTemplate reports whether a revision with the short hash is this one, or is known to have an equal template, as one
// has that a built-in workload left behind. A nil revision has none.
func (r *Revisions) HasTemplate(hash string, of *appsv1.ControllerRevision) bool {
	switch {
	case of == nil || hash == "":
		return false
	case hash == revision.Hash(of):
		return true
	}
	key := revisionPair{hash, of.Name}
	same, known := r.same[key]
	if !known {
		for _, other := range r.known {
			same = same || revision.Hash(other) == hash && r.equal(other, of)
		}
		r.same[key] = same
	}
	return same
}

func (r *Revisions) equal(a, b *appsv1.ControllerRevision) bool {
	first, errFirst := r.Template(a)
	second, errSecond := r.Template(b)
	return errFirst == nil && errSecond == nil && podspec.Equal(first, second, r.options.DefaultPullPolicy)
}

// Diff is how pods of the revision with the short hash are brought to another one in place. The error is the reason why
// they need a new pod, for instance because their own revision is no longer known.
func (r *Revisions) Diff(from string, to *appsv1.ControllerRevision) (*inplace.Update, error) {
	key := revisionPair{from, to.Name}
	w, ok := r.paths[key]
	if !ok {
		w.update, w.err = inplace.Diff(r.withHash(from), r.inPlace(to), r.options)
		r.paths[key] = w
	}
	return w.update, w.err
}

// withHash is the revision with the short hash, nil when it is no longer known.
func (r *Revisions) withHash(hash string) *inplace.Revision {
	for _, known := range r.known {
		if hash != "" && podstate.ShortHash(known.Name) == hash {
			return r.inPlace(known)
		}
	}
	return nil
}

func (r *Revisions) inPlace(of *appsv1.ControllerRevision) *inplace.Revision {
	template, err := r.Template(of)
	if err != nil {
		return nil
	}
	to := &inplace.Revision{Name: of.Name, Template: template}
	if r.ShortNames {
		to.Name = podstate.ShortHash(of.Name)
	}
	if hash, ok := of.Annotations[contract.VolumeClaimTemplateHashAnnotation]; ok {
		to.ClaimsHash = &hash
	}
	return to
}
