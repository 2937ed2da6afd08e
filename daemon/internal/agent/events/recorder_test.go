package events

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"

	"github.com/flotilla-project/flotilla/core/testing/await"
	"github.com/flotilla-project/flotilla/core/testing/testenv"
)

var logged testenv.Errors

func TestMain(m *testing.M) {
	logged.Capture()
	os.Exit(m.Run())
}

// The owners of a tag may live in a namespace that is going, and each is told of a pull.
func TestEventsOfNamespacesThatAreGoingAreNoErrors(t *testing.T) {
	var refused atomic.Int64
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		status := apierrors.NewForbidden(schema.GroupResource{Resource: "events"}, "it", nil).Status()
		status.TypeMeta = metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}
		if strings.Contains(r.URL.Path, "/namespaces/going/") {
			status.Details.Causes = []metav1.StatusCause{{Type: corev1.NamespaceTerminatingCause}}
			defer refused.Add(1)
		}
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusForbidden)
		assert.NoError(t, json.NewEncoder(w).Encode(status))
	}))
	t.Cleanup(server.Close)
	recorder, err := New(&rest.Config{Host: server.URL}, clientgoscheme.Scheme, "node")
	require.NoError(t, err)
	go func() { assert.NoError(t, recorder.Start(t.Context())) }()
	tell := func(namespace string, i int) {
		recorder.Record(Event{
			Regarding: &corev1.ObjectReference{Kind: "ImagePullJob", Namespace: namespace, Name: fmt.Sprint("job-", i)},
			Type:      corev1.EventTypeWarning, Reason: "Failed", Action: "PullImage", Note: "no",
		})
	}
	told := 0
	await.Until(t, func(check *assert.CollectT) { // what is told before the recorder has started is lost
		told++
		tell("going", told)
		assert.GreaterOrEqual(check, refused.Load(), int64(10))
	})
	tell("here", 0)
	await.Until(t, func(check *assert.CollectT) { assert.Len(check, logged.About("here"), 1) })
	assert.Empty(t, logged.About("going"))
}
