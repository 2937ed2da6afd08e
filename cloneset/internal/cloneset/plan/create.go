package plan

import (
	"fmt"
	"maps"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/flotilla-project/flotilla/core/action"
	"github.com/flotilla-project/flotilla/core/contract"
	"github.com/flotilla-project/flotilla/core/podstate"
	"github.com/flotilla-project/flotilla/core/revision"
)

const (
	idAlphabet = "bcdfghjklmnpqrstvwxz2456789"
	idLength   = 5
	// maxLabelValue is the longest label value that Kubernetes takes.
	maxLabelValue = 63
)

// freshID is an instance id that no pod and no claim of the set has.
func (p *pass) freshID() string {
	if p.usedIDs == nil {
		p.usedIDs = p.idsInUse()
	}
	id := make([]byte, idLength)
	for {
		for i := range id {
			id[i] = idAlphabet[p.rng.IntN(len(idAlphabet))]
		}
		if !p.usedIDs[string(id)] {
			p.usedIDs[string(id)] = true
			return string(id)
		}
	}
}

func (p *pass) idsInUse() map[string]bool {
	used := make(map[string]bool, len(p.Snapshot.Pods)+len(p.Claims))
	for _, list := range [][]*corev1.Pod{p.Snapshot.Pods, p.Orphans} {
		for _, o := range list {
			used[o.Labels[contract.InstanceIDLabel]] = true
		}
	}
	for _, claim := range p.Claims {
		used[claim.Labels[contract.InstanceIDLabel]] = true
	}
	return used
}

// newPod creates a pod of the revision, after its claims. With claims reused, it takes the id of
// claims without a pod when there are any.
func (p *pass) newPod(from *appsv1.ControllerRevision) (action.Action, error) {
	template, err := p.template(from)
	if err != nil {
		return action.Action{}, err
	}
	id := p.nextID()
	hash := podstate.ShortHash(from.Name)
	o := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Name:            p.Set.Name + "-" + id,
			GenerateName:    p.Set.Name + "-",
			Namespace:       p.Set.Namespace,
			Labels:          copyOf(template.Labels),
			Annotations:     copyOf(template.Annotations),
			Finalizers:      slices.Clone(template.Finalizers),
			OwnerReferences: []metav1.OwnerReference{controllerRef(p.Set)},
		},
		Spec: *template.Spec.DeepCopy(),
	}
	o.Labels[contract.RevisionLabel] = p.revisionLabel(from.Name)
	o.Labels[contract.TemplateHashLabel] = hash
	o.Labels[contract.InstanceIDLabel] = id
	o.Labels[contract.LifecycleStateLabel] = contract.LifecyclePreparingNormal
	o.Annotations[contract.LifecycleTimestampAnnotation] = p.Now.UTC().Format("2006-01-02T15:04:05Z")
	for _, gate := range []corev1.PodConditionType{contract.InPlaceUpdateReady, contract.KruisePodReady} {
		if !podstate.HasGate(o, gate) {
			o.Spec.ReadinessGates = append(o.Spec.ReadinessGates, corev1.PodReadinessGate{ConditionType: gate})
		}
	}
	revision.AlwaysPull(&o.Spec)
	claims := p.claimsOf(id)
	o.Spec.Volumes = withClaims(o.Spec.Volumes, claims, p.Set.Spec.VolumeClaimTemplates)
	a := action.Action{
		Verb: action.Create, Object: o, Reason: "ScaleOut", Message: "revision " + hash,
		Event: &action.Event{Succeeded: eventCreated, Note: "succeed to create pod " + o.Name, Failed: eventCreateFailed},
	}
	for _, claim := range claims {
		a.First = append(a.First, claim)
	}
	return a, nil
}

// revisionLabel is the value of the revision label: the revision's name, or its hash alone with
// gate CloneSetShortHash and where the name is too long for a label.
func (p *pass) revisionLabel(name string) string {
	if p.Gates.ShortHash || len(name) > maxLabelValue {
		return podstate.ShortHash(name)
	}
	return name
}

// nextID is the id of the next pod.
func (p *pass) nextID() string {
	if p.Set.Spec.ScaleStrategy.EnablePVCReuse {
		if id, ok := p.freeID(); ok {
			return id
		}
	}
	return p.freshID()
}

// template is the template of a revision, decoded once in a pass and read-only.
func (p *pass) template(r *appsv1.ControllerRevision) (*corev1.PodTemplateSpec, error) {
	if t, ok := p.templates[r.Name]; ok {
		return t, nil
	}
	t, err := revision.Template(r)
	if err != nil {
		return nil, fmt.Errorf("read template of revision %s: %w", r.Name, err)
	}
	p.templates[r.Name] = t
	return t, nil
}

func copyOf(m map[string]string) map[string]string {
	c := make(map[string]string, len(m)+4)
	maps.Copy(c, m)
	return c
}
