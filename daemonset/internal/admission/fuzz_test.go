package admission

import (
	"context"
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/flotilla-project/flotilla/core/testing/fuzz"
	"github.com/flotilla-project/flotilla/core/testing/fuzz/templates"
)

// empty is a cluster without objects.
type empty struct{ client.Reader }

func (empty) List(context.Context, client.ObjectList, ...client.ListOption) error { return nil }

func FuzzAdmission(f *testing.F) {
	w := NewWebhook(Rules{
		Templates: templates.Validator(), Nodes: empty{},
		FeatureGates: FeatureGates{PreDownload: true, DeletionProtection: true, Forecast: true},
	})
	fuzz.Admission{
		Mutating: w.Mutating().Handler, Validating: w.Validating().Handler, Convert: w.Convert,
		CRD: fuzz.ReadCRD(f, "../../config/crd/daemonsets.yaml"),
	}.Run(f, fuzz.Read(f, "../../config/samples/*.yaml")...)
}
