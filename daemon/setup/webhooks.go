package setup

import (
	"context"
	"fmt"

	utilrand "k8s.io/apimachinery/pkg/util/rand"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	coreadmission "github.com/flotilla-project/flotilla/core/operator/admission"
	"github.com/flotilla-project/flotilla/core/operator/features"
	"github.com/flotilla-project/flotilla/core/operator/manager"

	"github.com/flotilla-project/flotilla/daemon/internal/conversion"
	"github.com/flotilla-project/flotilla/daemon/internal/featuregates"
	launchadmission "github.com/flotilla-project/flotilla/daemon/internal/launch/admission"
	imageadmission "github.com/flotilla-project/flotilla/daemon/internal/nodeimage/admission"
	recreateadmission "github.com/flotilla-project/flotilla/daemon/internal/recreate/admission"
)

// suffixLength is the length of suffixes of generated names in Kubernetes.
const suffixLength = 5

// webhooks returns the same endpoints whatever the feature gates are: webhook configurations name them, and the API
// server would refuse the request if an endpoint were absent.
func (s *settings) webhooks(_ context.Context, env *manager.Environment) (manager.Webhooks, error) {
	live, err := env.APIReader("admission")
	if err != nil {
		return manager.Webhooks{}, fmt.Errorf("make a reader for admission: %w", err)
	}
	images := imageadmission.Webhook{Clock: env.Clock}
	requests := recreateadmission.Webhook{
		Reader: coreadmission.LimitReads(live, coreadmission.PodReadLimiter()), Open: s.backlog.Open,
	}
	pods := launchadmission.Webhook{Suffix: func() string { return utilrand.String(suffixLength) }}

	on := env.Options.FeatureGates.Enabled
	agent, pod := on(features.KruiseDaemon), on(features.PodWebhook)
	return manager.Webhooks{
		Mutating: []coreadmission.Endpoint{
			orRefuse(agent, images.Mutating()),
			orRefuse(agent, requests.Mutating()),
			orAllow(pod, pods.Launch()),
			orAllow(pod && on(featuregates.KruisePodReadinessGate), pods.ReadinessGate()),
		},
		Validating: []coreadmission.Endpoint{
			orRefuse(agent, images.Validating()),
			orRefuse(agent, requests.Validating()),
		},
		Converting: coreadmission.Converting(conversion.Convert),
	}, nil
}

// orRefuse denies all requests while feature gate KruiseDaemon is off: no agent would work on the object.
func orRefuse(on bool, e coreadmission.Endpoint) coreadmission.Endpoint {
	if on {
		return e
	}
	return e.Answering(admission.Denied, "feature-gate "+string(features.KruiseDaemon)+" is not enabled")
}

// orAllow allows all requests unchanged while a feature gate is off.
func orAllow(on bool, e coreadmission.Endpoint) coreadmission.Endpoint {
	if on {
		return e
	}
	return e.Answering(admission.Allowed, "")
}
