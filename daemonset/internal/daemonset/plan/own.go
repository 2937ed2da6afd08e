package plan

import (
	"maps"
	"slices"
	"strconv"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/flotilla-project/flotilla/core/contract"
	"github.com/flotilla-project/flotilla/core/plan/action"
	"github.com/flotilla-project/flotilla/core/pods/podstate"
	"github.com/flotilla-project/flotilla/core/workloads/ownership"
	"github.com/flotilla-project/flotilla/core/workloads/revision"
)

// templateGenerationLabel is the label of the built-in DaemonSet's first revisions.
const templateGenerationLabel = "pod-template-generation"

// release gives up pods with labels that the selector no longer matches.
func release(p *pass) {
	step := action.Step{Name: stepOwn}
	selector, err := metav1.LabelSelectorAsSelector(p.Set.Spec.Selector)
	for i := range p.pods {
		o := &p.pods[i]
		if err != nil || o.foreign || o.Terminating || selector.Matches(labels.Set(o.Pod.Labels)) {
			continue
		}
		o.foreign, o.touched, o.leaving = true, true, true
		step.Actions = append(step.Actions, ownership.Release(o.Pod, p.Set.UID, "its labels no longer match spec.selector"))
	}
	p.plan.Add(step)
}

// adopt takes pods and revisions that have no controller, and gives the set's own pods back the label without which
// they are out of the operator's sight. Adopted pods count as there at once, but not as available.
func adopt(p *pass) {
	step := action.Step{Name: stepOwn}
	step.Actions = append(step.Actions, revision.Adopt(p.Chosen, p.OrphanRevisions, p.liveHashes(), p.Owner)...)
	for i := range p.pods {
		o := &p.pods[i]
		_, shown := o.Pod.Labels[contract.RevisionLabel]
		switch {
		case o.touched:
		case o.foreign:
			o.touched = true
			step.Actions = append(step.Actions, ownership.AdoptPod(o.Pod, p.Owner, p.adoptionLabels(o), "it has no controller and spec.selector matches it"))
		case !shown && !o.Terminating:
			o.touched = true
			step.Actions = append(step.Actions, ownership.AdoptPod(o.Pod, p.Owner, p.adoptionLabels(o), "its label is missing"))
		}
	}
	p.plan.Add(step)
}

// adoptionLabels are the labels that a pod is missing. One without a revision is shown as a pod of an unknown one.
func (p *pass) adoptionLabels(o *pod) map[string]string {
	if missing := p.missingLabels(o.State); missing != nil {
		return missing
	}
	if _, shown := o.Pod.Labels[contract.RevisionLabel]; !shown {
		return map[string]string{contract.RevisionLabel: ""}
	}
	return nil
}

// hasUpdateTemplate reports whether the revision with the short hash is the update revision or has an equal template,
// as one has that a built-in DaemonSet left behind.
func (p *pass) hasUpdateTemplate(hash string) bool {
	return p.workload.Revisions.HasTemplate(hash, p.Chosen.Update)
}

// templateGeneration is the generation of the template that an annotation of the set gives, as it did before there were
// revisions.
func (p *pass) templateGeneration() (text string, ok bool) {
	text, ok = p.Set.Annotations[appsv1.DeprecatedTemplateGeneration]
	if _, err := strconv.ParseInt(text, 10, 64); err != nil {
		return "", false
	}
	return text, ok
}

// hasTemplateGeneration reports whether the pod is of the template's generation. It counts only for a pod of an unknown
// revision: a manifest that was read from a built-in DaemonSet keeps the annotation, and no edit raises it.
func (p *pass) hasTemplateGeneration(o *corev1.Pod) bool {
	text, ok := p.templateGeneration()
	return ok && o.Labels[templateGenerationLabel] == text && !p.isKnown(podstate.ShortHash(o.Labels[contract.RevisionLabel]))
}

// isKnown reports whether there is a revision with the short hash.
func (p *pass) isKnown(hash string) bool {
	has := func(r *appsv1.ControllerRevision) bool { return revision.Hash(r) == hash }
	return slices.ContainsFunc(p.Revisions, has) || slices.ContainsFunc(p.OrphanRevisions, has)
}

// revisionLabels show the revision of a pod: by its hash alone, as of a pod of a built-in DaemonSet.
func (p *pass) revisionLabels(name string) map[string]string {
	return map[string]string{contract.RevisionLabel: podstate.ShortHash(name)}
}

// newLabels are the labels that a new pod of the revision has in addition to the labels of its template.
func (p *pass) newLabels(of *appsv1.ControllerRevision) map[string]string {
	all := p.revisionLabels(of.Name)
	if text, ok := p.templateGeneration(); ok && p.Chosen.Update != nil && of.Name == p.Chosen.Update.Name {
		maps.Copy(all, map[string]string{templateGenerationLabel: text})
	}
	return all
}

// missingLabels are the labels of the update revision, where the pod has the labels of another one with an equal
// template.
func (p *pass) missingLabels(o podstate.State) map[string]string {
	update := p.Chosen.Update
	if update == nil || o.Revision == revision.Hash(update) || !p.hasUpdateTemplate(o.Revision) && !p.hasTemplateGeneration(o.Pod) {
		return nil
	}
	return p.revisionLabels(update.Name)
}
