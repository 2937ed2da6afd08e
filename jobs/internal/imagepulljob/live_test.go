package imagepulljob

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/flotilla-project/flotilla/jobs/api/v1beta1"
	"github.com/flotilla-project/flotilla/jobs/internal/imagepulljob/plan"
)

// server answers with a secret that has a version.
type server struct {
	client.Reader
	version string
}

func (s *server) Get(_ context.Context, _ client.ObjectKey, o client.Object, _ ...client.GetOption) error {
	o.SetResourceVersion(s.version)
	return nil
}

// A pass just before an answer is too old is the last one that may use it: the one after it comes in time.
func TestAChangedSecretIsSeenWithinTenSeconds(t *testing.T) {
	clock, live := clocktesting.NewFakePassiveClock(time.Unix(0, 0)), &server{version: "1"}
	s := newPullSecrets(live, "config", clock)
	read := func() string {
		secret, err := s.get(t.Context(), types.NamespacedName{Namespace: "default", Name: "registry"})
		require.NoError(t, err)
		return secret.ResourceVersion
	}
	assert.Equal(t, "1", read())
	live.version = "2"
	var last time.Time
	for step := 10 * time.Millisecond; read() == "1"; clock.SetTime(clock.Now().Add(step)) {
		last = clock.Now()
	}
	job := &v1beta1.ImagePullJob{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "warm"}}
	job.Spec.Image, job.Spec.PullSecrets = "nginx", []string{"registry"}
	job.Spec.CompletionPolicy.Type = v1beta1.CompletionNever
	next := last.Add(plan.Compute(plan.Snapshot{Job: job, Secrets: plan.Secrets{NamespaceReady: true}, Now: last}).RequeueAfter)
	clock.SetTime(next)
	assert.Equal(t, "2", read())
	assert.LessOrEqual(t, next.Sub(time.Unix(0, 0)), 10*time.Second)
}
