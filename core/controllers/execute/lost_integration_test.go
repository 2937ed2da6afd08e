package execute_test

import (
	"errors"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/rest"

	"github.com/flotilla-project/flotilla/core/plan/action"
)

// lost loses the answers of requests for pods with a method: the request arrives, the answer does not.
type lost struct {
	http.RoundTripper
	method string
}

func (l lost) RoundTrip(r *http.Request) (*http.Response, error) {
	response, err := l.RoundTripper.RoundTrip(r)
	if err == nil && r.Method == l.method && strings.Contains(r.URL.Path, "/pods") {
		_ = response.Body.Close()
		return nil, errors.New("connection lost")
	}
	return response, err
}

func losing(method string) func(*rest.Config) {
	return func(c *rest.Config) { c.Wrap(func(rt http.RoundTripper) http.RoundTripper { return lost{rt, method} }) }
}

func TestCreateWhoseAnswerIsLostIsInDoubt(t *testing.T) {
	w := newWorld(t, losing(http.MethodPost))
	out := w.Run(t.Context(), w.owner, []action.Step{step(create(w.pod("one")))})
	require.ErrorContains(t, out.Err, "connection lost")
	assert.Equal(t, []string{"doubtful one"}, w.writes.list)
	require.NoError(t, w.get(t, w.pod("one")))
}

func TestWriteWhoseAnswerIsLostIsInDoubt(t *testing.T) {
	for method, write := range map[string]func(*corev1.Pod) action.Action{
		http.MethodPatch:  func(p *corev1.Pod) action.Action { return label(p, "new") },
		http.MethodDelete: func(p *corev1.Pod) action.Action { return action.Action{Verb: action.Delete, Object: p} },
	} {
		t.Run(method, func(t *testing.T) {
			w := newWorld(t, losing(method))
			one := w.existing(t, "one")
			out := w.Run(t.Context(), w.owner, []action.Step{step(write(one))})
			require.ErrorContains(t, out.Err, "connection lost")
			assert.Equal(t, []string{"doubtful since " + one.ResourceVersion + " one"}, w.writes.list)
		})
	}
}
