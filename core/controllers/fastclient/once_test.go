package fastclient_test

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/flotilla-project/flotilla/core/controllers/fastclient"
)

func TestAWriteThatTheServerPutsOffIsSentOnce(t *testing.T) {
	var sent atomic.Int64
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		sent.Add(1)
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("Retry-After", "1")
		w.WriteHeader(http.StatusTooManyRequests)
		status := apierrors.NewTooManyRequests("too many", 7).ErrStatus
		status.TypeMeta = metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}
		assert.NoError(t, json.NewEncoder(w).Encode(status))
	}))
	t.Cleanup(server.Close)
	config := &rest.Config{Host: server.URL}
	fastclient.WriteOnce(config)
	pods := kubernetes.NewForConfigOrDie(config).CoreV1().Pods("default")
	_, err := pods.Create(t.Context(), &corev1.Pod{}, metav1.CreateOptions{})
	require.True(t, apierrors.IsTooManyRequests(err), "got %v", err)
	seconds, ok := apierrors.SuggestsClientDelay(err)
	assert.True(t, ok)
	assert.Equal(t, 7, seconds)
	assert.EqualValues(t, 1, sent.Load())
}
