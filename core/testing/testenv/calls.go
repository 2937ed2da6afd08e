package testenv

import (
	"bufio"
	"context"
	"net/http"
	"strconv"
	"strings"

	"github.com/stretchr/testify/require"
	"k8s.io/client-go/rest"
)

// FailedCalls is how often the API server has called a webhook that did not answer, whether it went on without it or
// refused the request.
func (e *Environment) FailedCalls(ctx context.Context, t require.TestingT) (n int) {
	transport, err := rest.HTTPClientFor(e.Config)
	require.NoError(t, err)
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, strings.TrimSuffix(e.Config.Host, "/")+"/metrics", http.NoBody)
	require.NoError(t, err)
	response, err := transport.Do(request)
	require.NoError(t, err)
	defer func() { require.NoError(t, response.Body.Close()) }()
	require.Equal(t, http.StatusOK, response.StatusCode)
	lines := bufio.NewScanner(response.Body)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		wentOn := strings.HasPrefix(lines.Text(), "apiserver_admission_webhook_fail_open_count{")
		refused := strings.HasPrefix(lines.Text(), "apiserver_admission_webhook_rejection_count{") &&
			strings.Contains(lines.Text(), `error_type="calling_webhook_error"`)
		if wentOn || refused {
			count, err := strconv.ParseFloat(lines.Text()[strings.LastIndex(lines.Text(), " ")+1:], 64)
			require.NoError(t, err)
			n += int(count)
		}
	}
	require.NoError(t, lines.Err())
	return n
}
