package admission

import (
	"context"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/flotilla-project/flotilla/core/testing/fuzz"
	"github.com/flotilla-project/flotilla/core/testing/fuzz/templates"
)

// noPods is a cluster without pods.
type noPods struct{}

func (noPods) Pod(_ context.Context, key client.ObjectKey) (*corev1.Pod, error) {
	return nil, apierrors.NewNotFound(corev1.Resource("pods"), key.Name)
}

func FuzzAdmission(f *testing.F) {
	w := NewWebhook(Reader{Pods: noPods{}, Templates: templates.Validator(), Forecast: true}, true)
	fuzz.Admission{
		Mutating: w.Mutating().Handler, Validating: w.Validating().Handler, Convert: w.Convert,
		CRD: fuzz.ReadCRD(f, "../../config/crd/clonesets.yaml"),
	}.Run(f, fuzz.Read(f, "../../config/samples/*.yaml")...)
}
