package setup

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	coreadmission "github.com/flotilla-project/flotilla/core/operator/admission"

	"github.com/flotilla-project/flotilla/budget/api/v1beta1"
)

// Whoever reaches the port can send requests. They can use a budget up, and never make room.
func TestForgedRequestsMakeNoRoom(t *testing.T) {
	_, hooks := serveOne(t)
	a := givenApp(t, env.Client(t), 3)
	b := a.budget(t)
	forge := func(number int, change func(*corev1.Pod)) int32 {
		pod := &corev1.Pod{}
		require.NoError(t, a.Get(t.Context(), client.ObjectKeyFromObject(a.pods[number]), pod))
		change(pod)
		return deletion(t, hooks.Validating, pod)
	}

	for number := range a.pods {
		assert.EqualValues(t, http.StatusBadRequest, forge(number, func(pod *corev1.Pod) { pod.UID = "" }))
		assert.EqualValues(t, http.StatusOK, forge(number, func(pod *corev1.Pod) { pod.UID = "invented" }))
		assert.EqualValues(t, http.StatusOK, forge(number, func(pod *corev1.Pod) {
			pod.Annotations[v1beta1.NoProtectAnnotation] = "true"
		}))
	}
	for i := range 20 {
		assert.EqualValues(t, http.StatusOK, forge(0, func(pod *corev1.Pod) { pod.Name = fmt.Sprint("invented-", i) }))
	}
	assert.Equal(t, [4]int32{3, 2, 3, 1}, a.numbers(t, b), "nothing is recorded")
	assert.Empty(t, b.Status.DisruptedPods)

	assert.EqualValues(t, http.StatusOK, forge(0, func(*corev1.Pod) {}))
	assert.Equal(t, [4]int32{3, 2, 2, 0}, a.numbers(t, b), "the budget is used up")
	require.Error(t, a.Delete(t.Context(), a.pods[1].DeepCopy()))
	require.Error(t, a.evict(t, a.pods[2]))
}

// deletion sends a review of a deletion, and returns the status that it is answered with.
func deletion(t *testing.T, endpoints []coreadmission.Endpoint, pod *corev1.Pod) int32 {
	t.Helper()
	pod.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Pod"))
	raw, err := json.Marshal(pod)
	require.NoError(t, err)
	review := admissionv1.AdmissionReview{Request: &admissionv1.AdmissionRequest{
		UID: "review", Kind: metav1.GroupVersionKind{Version: "v1", Kind: "Pod"}, Operation: admissionv1.Delete,
		Namespace: pod.Namespace, Name: pod.Name, OldObject: runtime.RawExtension{Raw: raw},
	}}
	review.SetGroupVersionKind(admissionv1.SchemeGroupVersion.WithKind("AdmissionReview"))
	body, err := json.Marshal(review)
	require.NoError(t, err)
	i := slices.IndexFunc(endpoints, func(e coreadmission.Endpoint) bool { return e.Path == "/validate-pod" })
	require.GreaterOrEqual(t, i, 0)
	request, recorder := httptest.NewRequestWithContext(t.Context(), http.MethodPost, endpoints[i].Path, bytes.NewReader(body)), httptest.NewRecorder()
	request.Header.Set("Content-Type", "application/json")
	endpoints[i].Handler.ServeHTTP(recorder, request)
	require.NoError(t, json.Unmarshal(recorder.Body.Bytes(), &review), recorder.Body)
	require.NotNil(t, review.Response, recorder.Body)
	return review.Response.Result.Code
}
