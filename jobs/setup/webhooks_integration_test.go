package setup

import (
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	coreadmission "github.com/flotilla-project/flotilla/core/operator/admission"
	"github.com/flotilla-project/flotilla/core/operator/features"
	"github.com/flotilla-project/flotilla/core/operator/manager"

	"github.com/flotilla-project/flotilla/jobs/internal/advancedcronjob"
	"github.com/flotilla-project/flotilla/jobs/internal/broadcastjob"
	"github.com/flotilla-project/flotilla/jobs/internal/featuregates"
	"github.com/flotilla-project/flotilla/jobs/internal/imagelistpulljob"
	"github.com/flotilla-project/flotilla/jobs/internal/imagepulljob"
	"github.com/flotilla-project/flotilla/jobs/internal/sidecarterminator"
)

func gated(off ...features.Name) *manager.Environment {
	set := features.Defaults(featuregates.All()...)
	for _, gate := range off {
		set = set.With(gate, false)
	}
	return &manager.Environment{Options: manager.Options{FeatureGates: set}}
}

// Jobs that pull images are refused while a gate is off without which nothing would pull them.
func TestImagesAreRefusedWhileAGateIsOff(t *testing.T) {
	endpoint := coreadmission.Endpoint{Path: "/x", Handler: http.NotFoundHandler()}
	const review = `{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","request":{"uid":"1","operation":"CREATE","object":{}}}`
	for _, gate := range []features.Name{features.KruiseDaemon, featuregates.ImagePullJobGate} {
		refusing := orRefuse(gated(gate), endpoint)
		assert.Equal(t, endpoint.Path, refusing.Path)
		request := httptest.NewRequestWithContext(t.Context(), http.MethodPost, endpoint.Path, strings.NewReader(review))
		request.Header.Set("Content-Type", "application/json")
		answer := httptest.NewRecorder()
		refusing.Handler.ServeHTTP(answer, request)
		assert.Contains(t, answer.Body.String(), `"allowed":false`)
		assert.Contains(t, answer.Body.String(), `"code":403`)
		assert.Contains(t, answer.Body.String(), "feature-gate "+string(gate)+" is not enabled")
	}
	assert.Equal(t, endpoint.Path, orRefuse(gated(), endpoint).Path)
	assert.IsType(t, endpoint.Handler, orRefuse(gated(), endpoint).Handler)
}

// Which controllers run follows from the gates.
func TestGatesSayWhatRuns(t *testing.T) {
	jobs := []string{advancedcronjob.ControllerName, broadcastjob.ControllerName}
	images := slices.Concat(jobs, []string{imagepulljob.ControllerName, imagelistpulljob.ControllerName})
	for name, c := range map[string]struct {
		env  *manager.Environment
		want []string
	}{
		"by default":           {gated(), images},
		"without ImagePullJob": {gated(featuregates.ImagePullJobGate), jobs},
		"without the agent":    {gated(features.KruiseDaemon), jobs},
		"with SidecarTerminator": {&manager.Environment{Options: manager.Options{
			FeatureGates: features.Defaults(featuregates.All()...).With(featuregates.SidecarTerminator, true),
		}}, slices.Concat(images, []string{sidecarterminator.ControllerName})},
	} {
		t.Run(name, func(t *testing.T) {
			var on []string
			for _, p := range (&settings{}).parts(c.env) {
				if p.on {
					on = append(on, p.name)
				}
			}
			assert.Equal(t, c.want, on)
		})
	}
}
