package openkruise

import (
	"context"
	"testing"
	"time"

	"github.com/go-logr/logr/funcr"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/flotilla-project/flotilla/core/testing/await"
)

// server has the webhooks of OpenKruise for these rules, or answers with an error.
type server struct {
	client.Reader
	rules []admissionregistrationv1.Rule
	err   error
}

func (s *server) Get(_ context.Context, key client.ObjectKey, o client.Object, _ ...client.GetOption) error {
	c, ok := o.(*admissionregistrationv1.ValidatingWebhookConfiguration)
	if !ok || key.Name != "kruise-validating-webhook-configuration" || s.err != nil {
		return s.err
	}
	for _, rule := range s.rules {
		c.Webhooks = append(c.Webhooks, admissionregistrationv1.ValidatingWebhook{Rules: []admissionregistrationv1.RuleWithOperations{{Rule: rule}}})
	}
	return nil
}

var (
	resources = schema.GroupResource{Group: "admissionregistration.k8s.io", Resource: "validatingwebhookconfigurations"}
	absent    = apierrors.NewNotFound(resources, configuration)
	forbidden = apierrors.NewForbidden(resources, configuration, nil)
	ofSets    = admissionregistrationv1.Rule{APIGroups: []string{"apps.kruise.io"}, Resources: []string{"clonesets"}}
	ofBudgets = admissionregistrationv1.Rule{APIGroups: []string{"policy.kruise.io"}, Resources: []string{"podunavailablebudgets"}}
)

func TestWhetherOpenKruiseAnswersForBudgets(t *testing.T) {
	for name, test := range map[string]struct {
		server  server
		answers bool
	}{
		"it is not there":              {server{err: absent}, false},
		"for budgets":                  {server{rules: []admissionregistrationv1.Rule{ofSets, ofBudgets}}, true},
		"for others, after a handover": {server{rules: []admissionregistrationv1.Rule{ofSets}}, false},
		"for others of that name":      {server{rules: []admissionregistrationv1.Rule{{APIGroups: []string{"example.com"}, Resources: ofBudgets.Resources}}}, false},
	} {
		t.Run(name, func(t *testing.T) {
			answers, err := Answers(t.Context(), &test.server)
			require.NoError(t, err)
			assert.Equal(t, test.answers, answers)
		})
	}
	_, err := Answers(t.Context(), &server{err: forbidden})
	assert.True(t, apierrors.IsForbidden(err))
}

// shown returns the metric.
func shown(t *testing.T) float64 {
	t.Helper()
	all := prometheus.NewPedanticRegistry()
	require.NoError(t, all.Register(beside))
	families, err := all.Gather()
	require.NoError(t, err)
	return families[0].Metric[0].Gauge.GetValue()
}

// What changes is told once. Without the right to look there is no hint, and no error.
func TestTheLeaderTellsOfOpenKruiseBesideIt(t *testing.T) {
	var told []string
	s := &server{err: absent}
	w := &Watch{Live: s, Log: funcr.New(func(_, args string) { told = append(told, args) }, funcr.Options{})}
	for _, step := range []struct {
		server server
		gauge  float64
		told   int
	}{
		{server{err: absent}, 0, 0},
		{server{err: forbidden}, 0, 0},
		{server{rules: []admissionregistrationv1.Rule{ofBudgets}}, 1, 1},
		{server{rules: []admissionregistrationv1.Rule{ofBudgets}}, 1, 1},
		{server{err: forbidden}, 1, 1},
		{server{rules: []admissionregistrationv1.Rule{ofSets}}, 0, 2},
		{server{err: absent}, 0, 2},
	} {
		*s = step.server
		w.look(t.Context())
		assert.InDelta(t, step.gauge, shown(t), 0)
		assert.Len(t, told, step.told)
	}
	assert.Contains(t, told[0], "flotilla takeover budget")
}

// asked tells of each question.
type asked struct {
	server
	questions chan struct{}
}

func (a *asked) Get(ctx context.Context, key client.ObjectKey, o client.Object, options ...client.GetOption) error {
	defer func() { a.questions <- struct{}{} }()
	return a.server.Get(ctx, key, o, options...)
}

func TestOpenKruiseIsLookedForNowAndThen(t *testing.T) {
	c := clocktesting.NewFakeClock(time.Unix(1000, 0))
	a := &asked{server{err: absent}, make(chan struct{})}
	ctx, end := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- (&Watch{Live: a, Clock: c}).Start(ctx) }()
	await.Receive(t, a.questions, "a look at the start")
	c.Step(pause)
	await.Receive(t, a.questions, "another one")
	end()
	assert.NoError(t, await.Receive(t, ended, "the end"))
}
