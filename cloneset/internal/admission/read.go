package admission

import (
	"context"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/flotilla-project/flotilla/cloneset/api/v1beta1"
	"github.com/flotilla-project/flotilla/core/controllers/podtemplate"
	"github.com/flotilla-project/flotilla/core/pods/inplace"
)

// PodLookup finds the pods that users name in podsToDelete.
type PodLookup interface {
	// Pod returns the pod, or an error of which users read the text.
	Pod(ctx context.Context, key client.ObjectKey) (*corev1.Pod, error)
}

// Reader gathers the facts for one request.
type Reader struct {
	Pods PodLookup
	// Templates validates pod templates.
	Templates podtemplate.Validator
	// InPlace names the changes that a running pod allows in this cluster.
	InPlace inplace.Options
	// Forecast warns of the effect that an edit of the template has on the pods.
	Forecast bool
}

// Read gathers the facts that the rules need about a change from old, nil on create, to set. It asks only for the
// facts that the change needs: newly listed pods, and new or changed templates. The error carries an API status and
// reports that the cluster did not answer.
func (r Reader) Read(ctx context.Context, set, old *v1beta1.CloneSet, version string) (Facts, error) {
	facts := Facts{
		Version: version,
		InPlace: r.InPlace,
		Pods:    r.newlyListed(ctx, set, old),
	}
	var stored *podtemplate.Template
	if old != nil {
		stored = new(templateOf(old))
	}
	var err error
	facts.Template, err = r.Templates.ValidateChange(ctx, set.Namespace, templateOf(set), stored, field.NewPath("spec", "template"))
	return facts, err
}

func templateOf(set *v1beta1.CloneSet) podtemplate.Template {
	return podtemplate.Template{Pod: &set.Spec.Template, Volumes: podtemplate.ClaimVolumes(set.Spec.VolumeClaimTemplates)}
}

// newlyListed looks up names that were not listed before. The controller takes names off once their pods are gone,
// and users may change other fields before that.
func (r Reader) newlyListed(ctx context.Context, set, old *v1beta1.CloneSet) map[string]PodFact {
	pods := map[string]PodFact{}
	for _, name := range set.Spec.ScaleStrategy.PodsToDelete {
		if old != nil && slices.Contains(old.Spec.ScaleStrategy.PodsToDelete, name) {
			continue
		}
		pod, err := r.Pods.Pod(ctx, client.ObjectKey{Namespace: set.Namespace, Name: name})
		pods[name] = PodFact{Pod: pod, Err: err}
	}
	return pods
}
