package manager

import (
	"context"
	"errors"
	"net/http"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/flotilla-project/flotilla/core/testing/testenv"
	"github.com/flotilla-project/flotilla/core/testing/testenv/faults"
)

// reaching is the environment of an operator for the namespace, which reaches the server in its own way.
func reaching(t *testing.T, over testenv.Environment, namespace string) *Environment {
	t.Helper()
	e := &Environment{Feature: "plain", Manager: over.Manager(t), Clock: clock.RealClock{}}
	e.Options.Namespace = namespace
	over.Start(t, e.Manager)
	return e
}

// What is stored must be known, whatever has been listed; what goes meanwhile need not be.
func TestAReplicaWaitsForWhatIsStored(t *testing.T) {
	admin, namespace := apiServer.Client(t), apiServer.Namespace(t)
	stays := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "stays"}}
	goes := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "goes"}}
	require.NoError(t, admin.Create(t.Context(), stays))
	require.NoError(t, admin.Create(t.Context(), goes))
	over, held := faults.Hold(apiServer, "/configmaps")
	e := reaching(t, over, namespace)
	asked, filled, missing := map[string]int{}, make(chan error, 1), errors.New("not known yet")
	go func() {
		filled <- AwaitKnown(t.Context(), e, &corev1.SecretList{}, []client.Object{&corev1.ConfigMap{}}, func(_ context.Context, s *corev1.Secret) error {
			asked[s.Name]++
			if s.Name == "goes" || asked[s.Name] < 3 {
				return missing
			}
			return nil
		})
	}()
	<-held.Asked
	assert.Empty(t, filled, "a cache is not filled")
	held.Release()
	require.NoError(t, admin.Delete(t.Context(), goes))
	require.NoError(t, <-filled)
	assert.GreaterOrEqual(t, asked["stays"], 3)

	ended, end := context.WithCancel(t.Context())
	err := AwaitKnown(ended, e, &corev1.SecretList{}, nil, func(context.Context, *corev1.Secret) error {
		end()
		return missing
	})
	require.ErrorIs(t, err, missing, "what was missing")

	broken := reaching(t, faults.Over(apiServer, func(r *http.Request, next http.RoundTripper) (*http.Response, error) {
		if r.Method == http.MethodGet && r.URL.Path == "/api/v1/namespaces/"+namespace+"/secrets" {
			return nil, assert.AnError
		}
		return next.RoundTrip(r)
	}), namespace)
	err = AwaitKnown(t.Context(), broken, &corev1.SecretList{}, nil, func(context.Context, *corev1.Secret) error { return nil })
	require.ErrorContains(t, err, "list stored objects", "it is not waited for: somebody may have to convert it")
}
