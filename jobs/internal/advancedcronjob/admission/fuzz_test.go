package admission

import (
	"context"
	"testing"

	"golang.org/x/time/rate"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/flotilla-project/flotilla/core/testing/fuzz"
	"github.com/flotilla-project/flotilla/core/testing/fuzz/templates"
)

// accepting is a cluster that accepts every object.
type accepting struct{ client.Client }

func (accepting) Create(context.Context, client.Object, ...client.CreateOption) error { return nil }

func FuzzAdmission(f *testing.F) {
	w := NewWebhook(Rules{Pods: templates.Validator(), Jobs: Jobs{Client: accepting{}, Limit: rate.NewLimiter(rate.Inf, 0)}})
	head := "apiVersion: apps.kruise.io/v1beta1\nkind: AdvancedCronJob\nmetadata: {name: cron, namespace: shop}\nspec: "
	var seeds [][]byte
	for _, template := range []string{jobs, each, images} {
		seeds = append(seeds, fuzz.Documents(f, head+`{schedule: "*/5 * * * *", timeZone: Asia/Shanghai, concurrencyPolicy: Forbid, template: `+template+`}`)...)
	}
	fuzz.Admission{
		Mutating: w.Mutating().Handler, Validating: w.Validating().Handler, Convert: w.Convert,
		CRD: fuzz.ReadCRD(f, "../../../config/crd/advancedcronjobs.yaml"),
	}.Run(f, seeds...)
}
