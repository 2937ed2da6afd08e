package optional

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Answers are those of API servers, as JSON and as protobuf. What a quota or a policy forbids is no lack of a permission.
func TestLackingPermissionsAreCounted(t *testing.T) {
	inJSON := `{"kind":"Status","code":403,"message":"gadgets.g.io is forbidden: User \"system:serviceaccount:a:b\" cannot list resource \"gadgets/status\" in API group \"g.io\" at the cluster scope"}`
	inProtobuf := "k8s\x00 pods \"x\" is forbidden: User \"b\" cannot patch resource \"sprockets\" in API group \"\" in the namespace \"n\"" + strings.Repeat(" ", 8<<10)
	code, text := http.StatusForbidden, ""
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(code)
		_, _ = io.WriteString(w, text)
	}))
	defer server.Close()
	asker := http.Client{Transport: CountForbidden()(http.DefaultTransport)}
	ask := func(with int, answer string) {
		t.Helper()
		code, text = with, answer
		response, err := asker.Get(server.URL)
		require.NoError(t, err)
		defer response.Body.Close()
		got, err := io.ReadAll(response.Body)
		require.NoError(t, err)
		assert.Equal(t, answer, string(got), "the answer is whole")
	}
	before := testutil.CollectAndCount(Forbidden())
	ask(http.StatusForbidden, `{"message":"pods \"x\" is forbidden: exceeded quota: few, requested: pods=1, used: pods=2, limited: pods=2"}`)
	ask(http.StatusOK, inJSON)
	assert.Equal(t, before, testutil.CollectAndCount(Forbidden()), "no permission is lacking")
	ask(http.StatusForbidden, inJSON)
	ask(http.StatusForbidden, inProtobuf)
	ask(http.StatusForbidden, inProtobuf)
	assert.InDelta(t, 1, testutil.ToFloat64(forbidden.WithLabelValues("list", "g.io", "gadgets/status")), 0)
	assert.InDelta(t, 2, testutil.ToFloat64(forbidden.WithLabelValues("patch", "", "sprockets")), 0)
}
