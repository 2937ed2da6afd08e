package fuzz

import (
	"bytes"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	jsonpatch "gopkg.in/evanphx/json-patch.v4" // as the API server
	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Admission are the webhooks of one kind.
type Admission struct {
	// Mutating and Validating answer requests. Either may be nil.
	Mutating, Validating http.Handler
	// CRD has the schemas of the kind. It is empty for a kind of Kubernetes.
	CRD CRD
	// Convert, unless nil, gives the seeds all versions of the kind.
	Convert Convert
	// Once is true if the mutating handler fills new objects once, and refuses objects that are filled already.
	Once bool
	// Subresources are those of which the validating handler is asked, too.
	Subresources []string
}

// Run adds the seeds of the kind and runs the target. It checks that
//   - every request is answered, and no rule panics;
//   - an answer that names errors in fields names the fields;
//   - the patch fits the object, and defaults of an object with defaults change nothing;
//   - an object that is valid is valid with its defaults;
//   - an update that changes nothing is allowed if the object is.
//
// The last two are checked for objects that the schema of the CRD accepts: the API server refuses the others before it
// asks.
func (a Admission) Run(f *testing.F, seeds ...[]byte) {
	f.Helper()
	add(f, a.CRD.inVersions(f, a.Convert, seeds))
	f.Fuzz(func(t *testing.T, raw, script []byte) {
		stored, ok := decode(raw)
		if !ok {
			return // core/operator/admission has a target of requests without an object
		}
		a.check(t, stored, edit(stored, a.CRD.schema(stored), script))
	})
}

func (a Admission) check(t *testing.T, stored, object Object) {
	t.Helper()
	for _, subresource := range append([]string{""}, a.Subresources...) {
		a.ask(t, a.Validating, request{
			operation:   admissionv1.Update,
			object:      object,
			old:         stored,
			subresource: subresource,
		})
		a.ask(t, a.Validating, request{
			operation:   admissionv1.Delete,
			old:         object,
			subresource: subresource,
		})
	}
	a.mutate(t, request{operation: admissionv1.Update, object: object, old: stored})
	whole, ok := a.mutate(t, request{operation: admissionv1.Create, object: object})
	isValid := a.ask(t, a.Validating, request{operation: admissionv1.Create, object: object}).Allowed
	if !ok {
		return
	}
	if !a.Once {
		a.checkAgain(t, whole)
	}
	isWhole := a.ask(t, a.Validating, request{operation: admissionv1.Create, object: whole})
	if a.CRD.Kind != "" && (!a.CRD.Accepts(object) || !a.CRD.Accepts(whole)) {
		return
	}
	if isValid {
		assert.True(t, isWhole.Allowed, "defaults make a valid object invalid: %v", isWhole.Result)
	}
	if isWhole.Allowed {
		whole = asStored(whole)
		same := a.ask(t, a.Validating, request{operation: admissionv1.Update, object: whole, old: whole})
		assert.True(t, same.Allowed, "an update that changes nothing is refused: %v", same.Result)
	}
}

// asStored returns the object with the metadata that the API server gives to each.
func asStored(object Object) Object {
	object = runtime.DeepCopyJSON(object)
	meta, ok := object["metadata"].(Object)
	if !ok {
		meta = Object{}
		object["metadata"] = meta
	}
	meta["name"], meta["namespace"], meta["uid"], meta["resourceVersion"] = "web", "shop", "u", "1"
	return object
}

// checkAgain checks that the defaults of an object with defaults change nothing.
func (a Admission) checkAgain(t *testing.T, whole Object) {
	t.Helper()
	again, ok := a.mutate(t, request{operation: admissionv1.Create, object: whole})
	require.True(t, ok, "the object with its defaults is refused")
	assert.JSONEq(t, string(encode(t, whole)), string(encode(t, again)), "defaults of an object with defaults change it")
}

// mutate returns the object with the patch of the answer, and whether the object is allowed.
func (a Admission) mutate(t *testing.T, r request) (Object, bool) {
	t.Helper()
	answer := a.ask(t, a.Mutating, r)
	if !answer.Allowed || len(answer.Patch) == 0 {
		return r.object, answer.Allowed
	}
	patch, err := jsonpatch.DecodePatch(answer.Patch)
	require.NoError(t, err)
	patched, err := patch.Apply(encode(t, r.object))
	require.NoError(t, err, "the patch does not fit: %s", answer.Patch)
	return clone(patched), true
}

// request is what the API server asks.
type request struct {
	operation   admissionv1.Operation
	object, old Object
	subresource string
}

// ask returns the answer of a handler to the request. A handler that is nil allows it.
func (a Admission) ask(t *testing.T, handler http.Handler, r request) *admissionv1.AdmissionResponse {
	t.Helper()
	if handler == nil {
		return &admissionv1.AdmissionResponse{Allowed: true}
	}
	body, err := json.Marshal(r.review(t))
	require.NoError(t, err)
	call := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/", bytes.NewReader(body))
	call.Header.Set("Content-Type", "application/json")
	recorder := httptest.NewRecorder()
	handler.ServeHTTP(recorder, call)
	require.Equal(t, http.StatusOK, recorder.Code)
	var review admissionv1.AdmissionReview
	require.NoError(t, json.Unmarshal(recorder.Body.Bytes(), &review))
	answer := review.Response
	require.NotNil(t, answer, "no answer")
	assert.EqualValues(t, "request", answer.UID)
	if answer.Allowed || answer.Result == nil {
		assert.True(t, answer.Allowed, "a refusal has no status")
		return answer
	}
	assert.NotContains(t, answer.Result.Message, "[recovered]", "a rule panics")
	assert.NotEmpty(t, strings.TrimSpace(answer.Result.Message), "a refusal has no message")
	if answer.Result.Reason == metav1.StatusReasonInvalid {
		require.NotNil(t, answer.Result.Details)
		for _, cause := range answer.Result.Details.Causes {
			assert.NotEmpty(t, cause.Field, "the error names no field: %s", cause.Message)
		}
	}
	return answer
}

func (r request) review(t *testing.T) admissionv1.AdmissionReview {
	t.Helper()
	about := r.object
	if about == nil {
		about = r.old
	}
	version, _ := about["apiVersion"].(string)
	kind, _ := about["kind"].(string)
	meta, _ := about["metadata"].(Object)
	name, _ := meta["name"].(string)
	namespace, _ := meta["namespace"].(string)
	asked := &admissionv1.AdmissionRequest{
		UID:         "request",
		Operation:   r.operation,
		SubResource: r.subresource,
		Name:        name,
		Namespace:   namespace,
		Kind:        metav1.GroupVersionKind(schema.FromAPIVersionAndKind(version, kind)),
	}
	if r.object != nil {
		asked.Object = runtime.RawExtension{Raw: encode(t, r.object)}
	}
	if r.old != nil {
		asked.OldObject = runtime.RawExtension{Raw: encode(t, r.old)}
	}
	return admissionv1.AdmissionReview{TypeMeta: metav1.TypeMeta{APIVersion: "admission.k8s.io/v1", Kind: "AdmissionReview"}, Request: asked}
}
