package admission

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/flotilla-project/flotilla/core/operator/admission"
	"github.com/flotilla-project/flotilla/core/operator/features"

	"github.com/flotilla-project/flotilla/budget/internal/featuregates"
	"github.com/flotilla-project/flotilla/core/testing/gen"
)

func TestNoAPIServerSendsSuchPods(t *testing.T) {
	for name, change := range map[string]func(*admission.Request[*corev1.Pod]){
		"no UID":            func(r *admission.Request[*corev1.Pod]) { r.Old.UID = "" },
		"no name":           func(r *admission.Request[*corev1.Pod]) { r.Old.Name, r.Name = "", "" },
		"a long name":       func(r *admission.Request[*corev1.Pod]) { r.Old.Name, r.Name = strings.Repeat("a", 254), "" },
		"no version":        func(r *admission.Request[*corev1.Pod]) { r.Old.ResourceVersion = "" },
		"a long version":    func(r *admission.Request[*corev1.Pod]) { r.Old.ResourceVersion = strings.Repeat("1", 21) },
		"another name":      func(r *admission.Request[*corev1.Pod]) { r.Name = "web-2" },
		"another namespace": func(r *admission.Request[*corev1.Pod]) { r.Old.Namespace = "other" },
	} {
		req := admission.Request[*corev1.Pod]{Operation: admissionv1.Delete, Namespace: gen.Namespace, Name: "web-1", Old: gen.Pod("web-1", gen.Ready(gen.Epoch()))}
		req.Old.ResourceVersion = "7"
		require.NoError(t, validateStored(req))
		many := req
		many.Name = ""
		require.NoError(t, validateStored(many), "a deletion of many names none")
		change(&req)
		assert.True(t, apierrors.IsBadRequest(validateStored(req)), name)
	}
}

// broken is a server that does not answer.
type broken struct{ client.Reader }

func (broken) Get(context.Context, client.ObjectKey, client.Object, ...client.GetOption) error {
	return errors.New("etcd has no leader")
}

// Drains end at any other status.
func TestAnEvictionThatCannotBeJudgedIsAskedForAgain(t *testing.T) {
	w := Pods{Live: broken{}, Gates: features.Defaults(featuregates.All()...)}
	_, err := w.evict(t.Context(), admission.Request[*policyv1.Eviction]{Operation: admissionv1.Create, Namespace: gen.Namespace, Name: "web-1", New: &policyv1.Eviction{}})
	var status apierrors.APIStatus
	require.ErrorAs(t, err, &status)
	assert.EqualValues(t, http.StatusTooManyRequests, status.Status().Code)
	assert.Zero(t, status.Status().Details.RetryAfterSeconds)
}
