package admission

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestConvertingAnswersForAllObjectsOrNone(t *testing.T) {
	const good = `{"apiVersion":"apps.kruise.io/v1beta1","kind":"CloneSet","metadata":{},"spec":{"scaleStrategy":{"enablePVCReuse":true}}}`
	cases := []struct {
		name, body string
		status     int
		want       string
	}{
		{
			"all", `{"request":{"uid":"1","desiredAPIVersion":"apps.kruise.io/v1beta1","objects":[` + good + `]}}`, http.StatusOK,
			`{"response":{"uid":"1","convertedObjects":[` + good + `],"result":{"metadata":{},"status":"Success"}}}`,
		},
		{
			"none", `{"request":{"uid":"1","desiredAPIVersion":"apps.kruise.io/v2","objects":[` + good + `]}}`, http.StatusOK,
			`{"response":{"uid":"1","convertedObjects":null,"result":{"metadata":{},"status":"Failure","message":"convert object 0 of the request: unsupported version: v1beta1 to v2"}}}`,
		},
		{"no request", `{}`, http.StatusBadRequest, ""},
		{"no JSON", `{`, http.StatusBadRequest, ""},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			answer := httptest.NewRecorder()
			NewWebhook(Reader{}, false).Converting().ServeHTTP(answer, httptest.NewRequest(http.MethodPost, "/convert", strings.NewReader(c.body)))
			assert.Equal(t, c.status, answer.Code)
			if c.want != "" {
				assert.JSONEq(t, c.want, answer.Body.String())
			}
		})
	}
}
