package admission

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	jsonpatch "github.com/evanphx/json-patch/v5"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/webhook/conversion/metrics"
)

// ask sends an admission request through HTTP, as the API server does.
func ask(t *testing.T, handler http.Handler, req admissionv1.AdmissionRequest) *admissionv1.AdmissionResponse {
	t.Helper()
	req.UID = "request"
	review := admissionv1.AdmissionReview{
		TypeMeta: metav1.TypeMeta{APIVersion: "admission.k8s.io/v1", Kind: "AdmissionReview"},
		Request:  &req,
	}
	var answer admissionv1.AdmissionReview
	post(t, handler, review, &answer)
	require.NotNil(t, answer.Response)
	assert.EqualValues(t, "request", answer.Response.UID)
	return answer.Response
}

func post(t *testing.T, handler http.Handler, question, answer any) {
	t.Helper()
	postTo(t, "/", handler, question, answer)
}

func postTo(t *testing.T, target string, handler http.Handler, question, answer any) {
	t.Helper()
	body, err := json.Marshal(question)
	require.NoError(t, err)
	call := httptest.NewRequestWithContext(t.Context(), http.MethodPost, target, bytes.NewReader(body))
	call.Header.Set("Content-Type", "application/json")
	recorder := httptest.NewRecorder()
	handler.ServeHTTP(recorder, call)
	require.NoError(t, json.Unmarshal(recorder.Body.Bytes(), answer))
}

func request(operation admissionv1.Operation, version, object, oldObject string) admissionv1.AdmissionRequest {
	return admissionv1.AdmissionRequest{
		Operation: operation,
		Kind:      metav1.GroupVersionKind{Group: "example.com", Version: version, Kind: "Widget"},
		Name:      "a",
		Namespace: "default",
		Object:    extension(object),
		OldObject: extension(oldObject),
	}
}

func extension(object string) runtime.RawExtension {
	if object == "" {
		return runtime.RawExtension{}
	}
	return runtime.RawExtension{Raw: []byte(object)}
}

// setDefaults recreates by default and paints parts red.
func setDefaults(_ context.Context, req Request[*widget]) error {
	if req.New.Spec.Strategy.Type == "" {
		req.New.Spec.Strategy.Type = "Recreate"
	}
	for i := range req.New.Spec.Parts {
		if req.New.Spec.Parts[i].Colour == "" {
			req.New.Spec.Parts[i].Colour = "red"
		}
	}
	if req.New.Annotations["drop"] != "" {
		delete(req.New.Annotations, "drop")
	}
	return nil
}

func TestDefaultingPatchesOnlyWhatDefaultsChanged(t *testing.T) {
	tests := []struct {
		name, version, object string
		patch                 string // empty: no patch at all
		want                  string
	}{
		{
			name:    "a default below a parent that was not sent",
			version: "v1beta1",
			object:  `{"metadata":{"name":"a"},"spec":{"unknown":1}}`,
			patch:   `[{"op":"add","path":"/spec/strategy","value":{"type":"Recreate"}}]`,
			want:    `{"metadata":{"name":"a"},"spec":{"unknown":1,"strategy":{"type":"Recreate"}}}`,
		},
		{
			name:    "a default beside an unknown field",
			version: "v1beta1",
			object:  `{"spec":{"strategy":{"later":true}}}`,
			patch:   `[{"op":"add","path":"/spec/strategy/type","value":"Recreate"}]`,
			want:    `{"spec":{"strategy":{"later":true,"type":"Recreate"}}}`,
		},
		{
			name:    "a field sent as null",
			version: "v1beta1",
			object:  `{"metadata":{"creationTimestamp":null},"spec":{"strategy":null}}`,
			patch:   `[{"op":"add","path":"/spec/strategy","value":{"type":"Recreate"}}]`,
			want:    `{"metadata":{"creationTimestamp":null},"spec":{"strategy":{"type":"Recreate"}}}`,
		},
		{
			name:    "an element of a list, its unknown fields kept",
			version: "v1beta1",
			object:  `{"spec":{"strategy":{"type":"InPlace"},"parts":[{"name":"x","colour":"blue"},{"name":"y","later":1}]}}`,
			patch:   `[{"op":"add","path":"/spec/parts/1/colour","value":"red"}]`,
			want:    `{"spec":{"strategy":{"type":"InPlace"},"parts":[{"name":"x","colour":"blue"},{"name":"y","later":1,"colour":"red"}]}}`,
		},
		{
			name:    "a removed key with a slash beside it",
			version: "v1beta1",
			object:  `{"metadata":{"annotations":{"drop":"x","a/b~c":"y"}},"spec":{"strategy":{"type":"InPlace"}}}`,
			patch:   `[{"op":"remove","path":"/metadata/annotations/drop"}]`,
			want:    `{"metadata":{"annotations":{"a/b~c":"y"}},"spec":{"strategy":{"type":"InPlace"}}}`,
		},
		{
			name:    "the old version is answered in its own words",
			version: "v1alpha1",
			object:  `{"metadata":{"annotations":{"example.com/parts":"x,y"}},"spec":{"size":9007199254740993}}`,
			patch:   `[{"op":"add","path":"/spec/strategyType","value":"Recreate"}]`,
			want:    `{"metadata":{"annotations":{"example.com/parts":"x,y"}},"spec":{"size":9007199254740993,"strategyType":"Recreate"}}`,
		},
		{
			name:    "nothing to default gives no patch",
			version: "v1alpha1",
			object:  `{"apiVersion":"example.com/v1alpha1","kind":"Widget","spec":{"strategyType":"InPlace","unknown":[]},"status":{}}`,
		},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			answer := ask(t, widgetKind().Defaulting(setDefaults), request(admissionv1.Create, test.version, test.object, ""))
			require.True(t, answer.Allowed, "%v", answer.Result)
			if test.patch == "" {
				assert.Empty(t, answer.Patch)
				return
			}
			assert.Equal(t, ptr.To(admissionv1.PatchTypeJSONPatch), answer.PatchType)
			assert.JSONEq(t, test.patch, string(answer.Patch))

			patch, err := jsonpatch.DecodePatch(answer.Patch)
			require.NoError(t, err)
			result, err := patch.Apply([]byte(test.object))
			require.NoError(t, err)
			assert.JSONEq(t, test.want, string(result))

			again := ask(t, widgetKind().Defaulting(setDefaults), request(admissionv1.Update, test.version, string(result), string(result)))
			assert.Empty(t, again.Patch, "what is defaulted is left alone")
		})
	}
}

func TestValidatingAnswersWithEveryErrorInTheWordsOfTheVersionSent(t *testing.T) {
	validate := func(_ context.Context, req Request[*widget]) (Findings, error) {
		return Findings{
			Errors: field.ErrorList{
				field.Invalid(field.NewPath("spec", "strategy", "type"), req.New.Spec.Strategy.Type, "is not known"),
				field.Required(field.NewPath("spec", "size"), ""),
			},
			Warnings: []string{"size will be required"},
		}, nil
	}
	for version, object := range map[string]string{
		"v1alpha1": `{"spec":{"strategyType":"Odd"}}`,
		"v1beta1":  `{"spec":{"strategy":{"type":"Odd"}}}`,
	} {
		answer := ask(t, widgetKind().Validating(validate), request(admissionv1.Create, version, object, ""))
		require.False(t, answer.Allowed)
		assert.EqualValues(t, http.StatusUnprocessableEntity, answer.Result.Code)
		assert.Equal(t, metav1.StatusReasonInvalid, answer.Result.Reason)
		assert.Equal(t, []string{"size will be required"}, answer.Warnings)

		var fields []string
		for _, cause := range answer.Result.Details.Causes {
			fields = append(fields, cause.Field)
		}
		typePath := map[string]string{"v1alpha1": "spec.strategyType", "v1beta1": "spec.strategy.type"}[version]
		assert.Equal(t, []string{typePath, "spec.size"}, fields)
		assert.Contains(t, answer.Result.Message, typePath)
		assert.Contains(t, answer.Result.Message, `Widget.example.com "a" is invalid`)
	}
}

func TestStatusOfRefusals(t *testing.T) {
	fails := func(err error) http.Handler {
		return widgetKind().Validating(func(context.Context, Request[*widget]) (Findings, error) { return Findings{}, err })
	}
	panics := widgetKind().Defaulting(func(context.Context, Request[*widget]) error { panic("index out of range") })
	resource := schema.GroupResource{Group: "example.com", Resource: "widgets"}

	tests := []struct {
		name    string
		handler http.Handler
		req     admissionv1.AdmissionRequest
		code    int32
		message string
	}{
		{"wrong type", fails(nil), request(admissionv1.Create, "v1beta1", `{"spec":{"size":"big"}}`, ""), http.StatusBadRequest, "size"},
		{"no object", fails(nil), request(admissionv1.Create, "v1beta1", ``, ""), http.StatusBadRequest, "the request lacks an object"},
		{"no old object", fails(nil), request(admissionv1.Update, "v1beta1", `{}`, ""), http.StatusBadRequest, "the request lacks an object"},
		{"unknown version", fails(nil), request(admissionv1.Create, "v2", `{}`, ""), http.StatusBadRequest, "unsupported version: v2"},
		{"forbidden", fails(apierrors.NewForbidden(resource, "a", errors.New("protected"))), request(admissionv1.Delete, "v1beta1", "", `{}`), http.StatusForbidden, "protected"},
		{"internal", fails(errors.New("no lister")), request(admissionv1.Create, "v1beta1", `{}`, ""), http.StatusInternalServerError, "no lister"},
		{"panic", panics, request(admissionv1.Create, "v1beta1", `{}`, ""), http.StatusInternalServerError, "index out of range"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			answer := ask(t, test.handler, test.req)
			assert.False(t, answer.Allowed)
			assert.Equal(t, test.code, answer.Result.Code)
			assert.Contains(t, answer.Result.Message, test.message)
		})
	}
}

func TestRulesSeeTheRequest(t *testing.T) {
	var seen Request[*widget]
	handler := widgetKind().Validating(func(_ context.Context, req Request[*widget]) (Findings, error) {
		seen = req
		return Findings{}, nil
	})

	req := request(admissionv1.Update, "v1alpha1", `{"metadata":{"generateName":"a-"},"spec":{"strategyType":"New"}}`, `{"spec":{"strategyType":"Old"}}`)
	req.Name, req.DryRun = "", new(true)
	require.True(t, ask(t, handler, req).Allowed)
	assert.Equal(t, "New", seen.New.Spec.Strategy.Type)
	assert.Equal(t, "Old", seen.Old.Spec.Strategy.Type)
	assert.Equal(t, "v1alpha1", seen.Version)
	assert.Equal(t, "a-", seen.Name)
	assert.True(t, seen.DryRun)

	require.True(t, ask(t, handler, request(admissionv1.Delete, "v1beta1", "", `{"spec":{"size":3}}`)).Allowed)
	assert.Nil(t, seen.New)
	assert.EqualValues(t, 3, seen.Old.Spec.Size)
}

func TestSubresourcesAreLetThrough(t *testing.T) {
	fail := widgetKind().Validating(func(context.Context, Request[*widget]) (Findings, error) { return Findings{}, errors.New("reached") })
	req := request(admissionv1.Update, "v1beta1", `{}`, `{}`)
	req.SubResource = "status"
	assert.True(t, ask(t, fail, req).Allowed)
}

func TestRulesJudgeSubresources(t *testing.T) {
	var seen []string
	note := func(subresource string, name string, dry bool) {
		seen = append(seen, fmt.Sprintf("%s of %s, dry run %t", subresource, name, dry))
	}
	pods := podKind().Validating(func(_ context.Context, req Request[*corev1.Pod]) (Findings, error) {
		assert.Equal(t, req.Operation == admissionv1.Delete, req.New == nil)
		note(string(req.Operation)+" "+req.Subresource, req.Old.Name, req.DryRun)
		return Findings{}, nil
	})
	evictions := NewKind("policy", "Eviction", Hub[policyv1.Eviction]("v1")).Validating(func(_ context.Context, req Request[*policyv1.Eviction]) (Findings, error) {
		assert.Equal(t, "drain", req.User.Username)
		assert.Equal(t, new(int64(7)), req.New.DeleteOptions.GracePeriodSeconds)
		note(string(req.Operation)+" "+req.Subresource, req.Namespace+"/"+req.Name, req.DryRun)
		return Findings{}, nil
	})
	handler := pods.Subresource("resize", pods).Subresource("eviction", evictions)

	pod := `{"apiVersion":"v1","kind":"Pod","metadata":{"name":"web"}}`
	for _, test := range []struct {
		operation           admissionv1.Operation
		subresource, object string
	}{
		{admissionv1.Update, "", pod},
		{admissionv1.Update, "resize", pod},
		{admissionv1.Update, "status", `{"metadata":1}`},
		{admissionv1.Delete, "", ""},
	} {
		req := request(test.operation, "v1", test.object, pod)
		req.Kind, req.SubResource = metav1.GroupVersionKind{Version: "v1", Kind: "Pod"}, test.subresource
		require.True(t, ask(t, handler, req).Allowed)
	}
	req := request(admissionv1.Create, "v1", `{"deleteOptions":{"gracePeriodSeconds":7}}`, "")
	req.Kind, req.SubResource, req.DryRun = metav1.GroupVersionKind{Group: "policy", Version: "v1", Kind: "Eviction"}, "eviction", new(true)
	req.UserInfo.Username = "drain"
	require.True(t, ask(t, handler, req).Allowed)
	assert.Equal(t, []string{
		"UPDATE  of web, dry run false", "UPDATE resize of web, dry run false", "DELETE  of web, dry run false",
		"CREATE eviction of default/a, dry run true",
	}, seen)

	req.SubResource = "eviction"
	assert.True(t, ask(t, pods, req).Allowed, "the handler that was added to has not changed")
}

func TestAnswersCarryTheirOwnCodeAndWarnings(t *testing.T) {
	pods := schema.GroupResource{Resource: "pods"}
	tests := []struct {
		err    error
		code   int32
		reason metav1.StatusReason
	}{
		{apierrors.NewForbidden(pods, "web", errors.New("the budget is spent")), http.StatusForbidden, metav1.StatusReasonForbidden},
		{apierrors.NewTooManyRequests("the budget is spent", 0), http.StatusTooManyRequests, metav1.StatusReasonTooManyRequests},
		{fmt.Errorf("judge: %w", apierrors.NewTooManyRequests("the budget is spent", 0)), http.StatusTooManyRequests, metav1.StatusReasonTooManyRequests},
	}
	for _, test := range tests {
		rule := func(context.Context, Request[*corev1.Pod]) (Findings, error) {
			return Findings{Warnings: []string{"one pod is in the way"}}, test.err
		}
		for _, handler := range []Handler{podKind().Validating(rule), podKind().Mutating(rule)} {
			answer := ask(t, handler, request(admissionv1.Create, "v1", `{}`, ""))
			assert.False(t, answer.Allowed)
			assert.Equal(t, test.code, answer.Result.Code)
			assert.Equal(t, test.reason, answer.Result.Reason)
			assert.Contains(t, answer.Result.Message, "the budget is spent")
			assert.Equal(t, []string{"one pod is in the way"}, answer.Warnings)
			if answer.Result.Details != nil {
				assert.Zero(t, answer.Result.Details.RetryAfterSeconds)
			}
		}
	}
}

func TestMutatingAnswersWithFindings(t *testing.T) {
	handler := func(found Findings) http.Handler {
		return widgetKind().Mutating(func(_ context.Context, req Request[*widget]) (Findings, error) {
			req.New.Spec.Strategy.Type = "Recreate"
			return found, nil
		})
	}
	req := request(admissionv1.Create, "v1alpha1", `{"spec":{}}`, "")
	answer := ask(t, handler(Findings{Warnings: []string{"no room"}}), req)
	assert.True(t, answer.Allowed)
	assert.JSONEq(t, `[{"op":"add","path":"/spec/strategyType","value":"Recreate"}]`, string(answer.Patch))
	assert.Equal(t, []string{"no room"}, answer.Warnings)

	answer = ask(t, handler(Findings{Errors: field.ErrorList{field.Required(field.NewPath("spec", "strategy", "type"), "")}}), req)
	assert.False(t, answer.Allowed)
	assert.Empty(t, answer.Patch)
	assert.Equal(t, "spec.strategyType", answer.Result.Details.Causes[0].Field)
}

func TestWhatIsNoAdmissionRequestIsAnsweredWith400(t *testing.T) {
	for _, body := range []string{"", "{", "{}", `{"request":1}`} {
		call := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/", strings.NewReader(body))
		call.Header.Set("Content-Type", "application/json")
		recorder := httptest.NewRecorder()
		widgetKind().Defaulting(setDefaults).ServeHTTP(recorder, call)
		var answer admissionv1.AdmissionReview
		require.NoError(t, json.Unmarshal(recorder.Body.Bytes(), &answer))
		assert.False(t, answer.Response.Allowed, body)
		assert.EqualValues(t, http.StatusBadRequest, answer.Response.Result.Code, body)
	}
}

func TestConvertingGoesThroughTheHub(t *testing.T) {
	handler := Converting(widgetKind().Convert)
	old := `{"apiVersion":"example.com/v1alpha1","kind":"Widget","metadata":{"name":"a","annotations":{"example.com/parts":"x"}},"spec":{"strategyType":"InPlace","size":2}}`
	now := `{"apiVersion":"example.com/v1beta1","kind":"Widget","metadata":{"name":"a"},"spec":{"strategy":{"type":"InPlace"},"parts":[{"name":"x"}],"size":2}}`

	convert := func(version, object string) *apiextensionsv1.ConversionResponse {
		var answer apiextensionsv1.ConversionReview
		post(t, handler, apiextensionsv1.ConversionReview{
			TypeMeta: metav1.TypeMeta{APIVersion: "apiextensions.k8s.io/v1", Kind: "ConversionReview"},
			Request: &apiextensionsv1.ConversionRequest{
				UID: "u", DesiredAPIVersion: "example.com/" + version, Objects: []runtime.RawExtension{{Raw: []byte(object)}},
			},
		}, &answer)
		return answer.Response
	}

	up := convert("v1beta1", old)
	require.Equal(t, metav1.StatusSuccess, up.Result.Status, up.Result.Message)
	require.Len(t, up.ConvertedObjects, 1)
	assert.JSONEq(t, now, dropNull(t, up.ConvertedObjects[0].Raw))

	down := convert("v1alpha1", now)
	require.Equal(t, metav1.StatusSuccess, down.Result.Status, down.Result.Message)
	assert.JSONEq(t, old, dropNull(t, down.ConvertedObjects[0].Raw))

	assert.Equal(t, metav1.StatusFailure, convert("v2", now).Result.Status)
}

// The API server needs an answer to every conversion: a connection that ends makes lists of the kind fail
// without a word.
func TestAPanicInAConversionIsAnAnswer(t *testing.T) {
	panics := func([]byte, string) ([]byte, error) { panic("index out of range") }
	before := testutil.ToFloat64(metrics.WebhookPanics)
	var answer apiextensionsv1.ConversionReview
	post(t, Converting(panics), apiextensionsv1.ConversionReview{Request: &apiextensionsv1.ConversionRequest{
		UID: "u", DesiredAPIVersion: "example.com/v1beta1", Objects: []runtime.RawExtension{{Raw: []byte(`{}`)}},
	}}, &answer)
	require.NotNil(t, answer.Response)
	assert.EqualValues(t, "u", answer.Response.UID)
	assert.Equal(t, metav1.StatusFailure, answer.Response.Result.Status)
	assert.Contains(t, answer.Response.Result.Message, "index out of range")
	assert.Empty(t, answer.Response.ConvertedObjects)
	assert.InDelta(t, before+1, testutil.ToFloat64(metrics.WebhookPanics), 0)
}

// dropNull removes metadata.creationTimestamp, which some encoders write as null.
func dropNull(t *testing.T, raw []byte) string {
	t.Helper()
	var object map[string]any
	require.NoError(t, json.Unmarshal(raw, &object))
	delete(object["metadata"].(map[string]any), "creationTimestamp")
	out, err := json.Marshal(object)
	require.NoError(t, err)
	return string(out)
}

func TestPathsAreThoseOfTheConfigurations(t *testing.T) {
	sets := NewKind("apps.kruise.io", "CloneSet", Hub[widget]("v1beta1"))
	assert.Equal(t, "/mutate-apps-kruise-io-cloneset", sets.MutatePath())
	assert.Equal(t, "/validate-apps-kruise-io-cloneset", sets.ValidatePath())
	assert.Equal(t, "/mutate-pod", podKind().MutatePath())
	assert.Equal(t, "/validate-pod", podKind().ValidatePath())
}
