package cloneset_test

import (
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/flotilla-project/flotilla/core/simnodes"

	"github.com/flotilla-project/flotilla/cloneset/api/v1beta1"
)

// An operator that restarts is shown the past by an API server that lags: its first lists are of an
// earlier version, and a moment later the watches jump to the present. It plans nothing from the past:
// no pod is made or taken that the present does not ask for.
func TestThePastIsNotPlannedFrom(t *testing.T) {
	tests := []struct {
		name string
		// old says which kinds are shown as they were.
		old []string
	}{
		{name: "pods", old: []string{"/pods"}},
		{name: "sets", old: []string{"/clonesets"}},
		{name: "everything", old: []string{"/pods", "/clonesets", "/controllerrevisions", "/persistentvolumeclaims"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			const wanted, maxUnavailable = 5, 1
			givenNodes(t, simnodes.Options{Bind: true})
			c := env.Client(t)
			set := newSet(env.Namespace(t), 2, v1beta1.InPlaceIfPossible, maxUnavailable)
			operators := newReplicas(t, set.Namespace)
			stop := operators.start(t, pass)
			require.NoError(t, c.Create(t.Context(), set))
			settles(t, c, set)
			past := recordPods(t, set.Namespace)
			edit(t, c, set, func(s *v1beta1.CloneSet) {
				image("app:2")(s)
				s.Spec.Replicas = new(int32(wanted))
			})
			settles(t, c, set)
			before := identities(podsOf(t, c, set))
			edit(t, c, set, image("app:3"))
			eventually(t, func(collect *assert.CollectT) {
				assert.Positive(collect, countImages(podsOf(t, c, set))["app:3"])
			})
			stop()
			assert.Less(t, countImages(podsOf(t, c, set))["app:3"], wanted, "the rollout was over")

			history := recordPods(t, set.Namespace)
			lag := laggingServer{version: past.version, old: tt.old}
			operators.start(t, lag.send)
			settles(t, c, set)
			assert.EqualValues(t, len(tt.old), lag.lists.Load(), "lists of the past")
			history.replay(t, func(pods []*corev1.Pod) {
				active, available := countPods(pods)
				assert.Equal(t, wanted, active)
				assert.GreaterOrEqual(t, available, wanted-maxUnavailable)
			})
			assert.Equal(t, before, identities(podsOf(t, c, set)))
			assertWanted(t, c, set)
			assertCalm(t, c, set)
		})
	}
}

// laggingServer answers the lists that fill caches with how things were at the version, and delivers
// nothing newer for a moment.
type laggingServer struct {
	version string
	old     []string
	lists   atomic.Int64
}

func (s *laggingServer) send(r *http.Request, next http.RoundTripper) (*http.Response, error) {
	query := r.URL.Query()
	lags := false
	for _, kind := range s.old {
		lags = lags || strings.HasSuffix(r.URL.Path, kind)
	}
	switch {
	case r.Method != http.MethodGet || !lags:
		return next.RoundTrip(r)
	case query.Get("sendInitialEvents") == "true":
		return answer(r, apierrors.NewBadRequest("this server cannot list in a watch")) // so that the client lists
	case query.Has("watch"):
		response, err := next.RoundTrip(r)
		if err == nil {
			until := &atomic.Int64{}
			until.Store(time.Now().Add(time.Second / 2).UnixNano())
			response.Body = lateBody{response.Body, until}
		}
		return response, err
	case query.Get("resourceVersion") == "0": // any version will do; other lists ask for the latest
		s.lists.Add(1)
		query.Set("resourceVersion", s.version)
		query.Set("resourceVersionMatch", "Exact")
		past := r.Clone(r.Context())
		past.URL.RawQuery = query.Encode()
		return next.RoundTrip(past)
	}
	return next.RoundTrip(r)
}
