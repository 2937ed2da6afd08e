package admission

import (
	"context"
	"testing"

	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/flotilla-project/flotilla/core/testing/fuzz"
	"github.com/flotilla-project/flotilla/core/testing/fuzz/templates"
)

// empty is a cluster without objects.
type empty struct{ client.Reader }

func (empty) Get(_ context.Context, key client.ObjectKey, _ client.Object, _ ...client.GetOption) error {
	return apierrors.NewNotFound(storagev1.Resource("storageclasses"), key.Name)
}

func (empty) List(context.Context, client.ObjectList, ...client.ListOption) error { return nil }

func FuzzAdmission(f *testing.F) {
	w := NewWebhook(Reader{
		Templates: templates.Validator(), Classes: empty{},
		FeatureGates: FeatureGates{
			StartOrdinal: true, AutoDeletePVC: true, AutoResizePVC: true, PreDownload: true, DeletionProtection: true, Forecast: true,
		},
	})
	fuzz.Admission{
		Mutating: w.Mutating().Handler, Validating: w.Validating().Handler, Convert: w.Convert,
		CRD: fuzz.ReadCRD(f, "../../config/crd/statefulsets.yaml"),
	}.Run(f, fuzz.Read(f, "../../config/samples/*.yaml")...)
}
