package setup

import (
	"context"
	"fmt"

	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/flotilla-project/flotilla/core/frame"
	coreadmission "github.com/flotilla-project/flotilla/core/operator/admission"
	"github.com/flotilla-project/flotilla/core/operator/features"
	"github.com/flotilla-project/flotilla/core/operator/manager"

	cronadmission "github.com/flotilla-project/flotilla/jobs/internal/advancedcronjob/admission"
	broadcastadmission "github.com/flotilla-project/flotilla/jobs/internal/broadcastjob/admission"
	"github.com/flotilla-project/flotilla/jobs/internal/conversion"
	"github.com/flotilla-project/flotilla/jobs/internal/featuregates"
	listadmission "github.com/flotilla-project/flotilla/jobs/internal/imagelistpulljob/admission"
	pulladmission "github.com/flotilla-project/flotilla/jobs/internal/imagepulljob/admission"
)

// webhooks returns the same endpoints whatever the feature gates are: webhook configurations name them, and the API
// server would refuse the request if an endpoint were absent.
func webhooks(_ context.Context, env *manager.Environment) (manager.Webhooks, error) {
	cached, err := env.Client("admission")
	if err != nil {
		return manager.Webhooks{}, fmt.Errorf("make a client for admission: %w", err)
	}
	pods := frame.TemplateValidator(env, cached)
	cron := cronadmission.NewWebhook(cronadmission.Rules{Pods: pods, Jobs: cronadmission.Jobs{Client: cached, Limit: coreadmission.QueryLimiter()}})
	broadcast := broadcastadmission.NewWebhook(pods)
	pull, list := pulladmission.NewWebhook(), listadmission.NewWebhook()
	return manager.Webhooks{
		Mutating: []coreadmission.Endpoint{
			cron.Mutating(), broadcast.Mutating(), orRefuse(env, pull.Mutating()), orRefuse(env, list.Mutating()),
		},
		Validating: []coreadmission.Endpoint{
			cron.Validating(), broadcast.Validating(), orRefuse(env, pull.Validating()), orRefuse(env, list.Validating()),
		},
		Converting: coreadmission.Converting(conversion.Convert),
	}, nil
}

// orRefuse denies all requests while a feature gate is off without which no image is pulled.
func orRefuse(env *manager.Environment, e coreadmission.Endpoint) coreadmission.Endpoint {
	for _, gate := range []features.Name{features.KruiseDaemon, featuregates.ImagePullJobGate} {
		if !env.Options.FeatureGates.Enabled(gate) {
			return e.Answering(admission.Denied, "feature-gate "+string(gate)+" is not enabled")
		}
	}
	return e
}
