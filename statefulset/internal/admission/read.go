package admission

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/flotilla-project/flotilla/core/controllers/podtemplate"
	"github.com/flotilla-project/flotilla/core/pods/inplace"
	"github.com/flotilla-project/flotilla/statefulset/api/v1beta1"
)

// defaultClassAnnotation set to "true" marks a storage class that claims without a class get.
const defaultClassAnnotation = "storageclass.kubernetes.io/is-default-class"

// Reader gathers the facts for one request.
type Reader struct {
	// Templates asks the cluster about pod templates.
	Templates podtemplate.Validator
	// Classes reads storage classes, live: only changes of size ask for them.
	Classes client.Reader
	// InPlace names the changes that a running pod allows in this cluster.
	InPlace      inplace.Options
	FeatureGates FeatureGates
}

// Read gathers the facts that the rules need about a change from old, nil on create, to set. It asks only for the
// facts that the change needs: new or changed templates, and the classes of claims with a changed size while claims
// follow their templates. The error carries an API status and reports that the cluster did not answer.
func (r Reader) Read(ctx context.Context, set, old *v1beta1.StatefulSet, version string) (Facts, error) {
	facts := Facts{
		Version:      version,
		FeatureGates: r.FeatureGates,
		InPlace:      r.InPlace,
	}
	var before *podtemplate.Template
	if old != nil {
		before = new(template(old))
		facts.Classes = r.classes(ctx, set, old)
	}
	var err error
	facts.Template, err = r.Templates.ValidateChange(ctx, set.Namespace, template(set), before, specPath().Child("template"))
	return facts, err
}

func template(set *v1beta1.StatefulSet) podtemplate.Template {
	return podtemplate.Template{
		Pod: &set.Spec.Template, Volumes: podtemplate.ClaimVolumes(set.Spec.VolumeClaimTemplates),
	}
}

func (r Reader) classes(ctx context.Context, set, old *v1beta1.StatefulSet) map[string]Class {
	templates := set.Spec.VolumeClaimTemplates
	stored := old.Spec.VolumeClaimTemplates
	if !resizes(set, r.FeatureGates) || len(templates) != len(stored) {
		return nil
	}
	classes := map[string]Class{}
	for i := range templates {
		if changesSize(&templates[i], &stored[i]) {
			classes[templates[i].Name] = r.class(ctx, &templates[i])
		}
	}
	return classes
}

func (r Reader) class(ctx context.Context, claim *corev1.PersistentVolumeClaim) Class {
	if claim.Spec.StorageClassName == nil {
		return r.defaultClass(ctx)
	}
	var class storagev1.StorageClass
	if err := r.Classes.Get(ctx, client.ObjectKey{Name: *claim.Spec.StorageClassName}, &class); err != nil {
		return Class{Err: err}
	}
	return classOf(&class)
}

// defaultClass is the newest of the default classes, which is the one that the API server gives to claims.
func (r Reader) defaultClass(ctx context.Context) Class {
	var classes storagev1.StorageClassList
	if err := r.Classes.List(ctx, &classes); err != nil {
		return Class{Err: err}
	}
	var newest *storagev1.StorageClass
	for i := range classes.Items {
		class := &classes.Items[i]
		if class.Annotations[defaultClassAnnotation] == "true" &&
			(newest == nil || newest.CreationTimestamp.Before(&class.CreationTimestamp)) {
			newest = class
		}
	}
	if newest == nil {
		return Class{}
	}
	return classOf(newest)
}

func classOf(class *storagev1.StorageClass) Class {
	return Class{Name: class.Name, Expandable: class.AllowVolumeExpansion != nil && *class.AllowVolumeExpansion}
}
