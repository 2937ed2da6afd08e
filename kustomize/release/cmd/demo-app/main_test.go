package main

import (
	"bufio"
	"context"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func folder(t *testing.T, files ...string) string {
	t.Helper()
	dir := t.TempDir()
	for _, name := range files {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte("v7\n"), 0o600))
	}
	return dir
}

// start runs the app on a free port and returns its address and what run returns in the end.
func start(t *testing.T, ctx context.Context, args ...string) (string, <-chan error) {
	t.Helper()
	reader, writer := io.Pipe()
	ended := make(chan error, 1)
	content := folder(t, "version")
	go func() {
		ended <- run(ctx, content, append([]string{"-address", "127.0.0.1:0"}, args...), writer)
		_ = writer.Close()
	}()
	for lines := bufio.NewScanner(reader); lines.Scan(); {
		if address, ok := strings.CutPrefix(lines.Text(), "listening on "); ok {
			return "http://" + address, ended
		}
	}
	require.Fail(t, "the app did not start", "%v", <-ended)
	return "", nil
}

func get(t require.TestingT, url string) (int, string) {
	answer, err := http.Get(url)
	require.NoError(t, err)
	body, err := io.ReadAll(answer.Body)
	require.NoError(t, err)
	require.NoError(t, answer.Body.Close())
	return answer.StatusCode, string(body)
}

func TestAppAnswersAndStopsAtOnce(t *testing.T) {
	t.Setenv("SHOWN", "yes")
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	url, ended := start(t, ctx)
	_, body := get(t, url)
	assert.Equal(t, "v7\n", body)
	_, body = get(t, url+"/env")
	assert.Contains(t, body, "SHOWN=yes\n")
	code, _ := get(t, url+"/healthz")
	assert.Equal(t, http.StatusOK, code)
	code, _ = get(t, url+"/other")
	assert.Equal(t, http.StatusNotFound, code)
	stop()
	require.NoError(t, <-ended)
}

func TestADeafAppGoesOn(t *testing.T) {
	ctx, stop := context.WithCancel(t.Context())
	url, ended := start(t, ctx, "-deaf")
	stop()
	code, _ := get(t, url+"/healthz")
	assert.Equal(t, http.StatusOK, code)
	assert.Empty(t, ended)
}

func TestAppIsReadyForAWhile(t *testing.T) {
	url, _ := start(t, t.Context(), "-ready-after", "200ms", "-fail-after", "600ms")
	for _, wanted := range []int{http.StatusServiceUnavailable, http.StatusOK, http.StatusServiceUnavailable} {
		require.EventuallyWithT(t, func(c *assert.CollectT) {
			code, _ := get(c, url+"/healthz")
			assert.Equal(c, wanted, code)
		}, 4*time.Minute, 20*time.Millisecond)
	}
}

func TestAppCrashesAsToldTo(t *testing.T) {
	require.ErrorIs(t, run(t.Context(), folder(t, "version", "crash"), nil, io.Discard), errCrash)
	require.ErrorIs(t, run(t.Context(), folder(t, "version"), []string{"-crash"}, io.Discard), errCrash)
	_, ended := start(t, t.Context(), "-crash-after", "20ms")
	require.ErrorIs(t, <-ended, errCrash)
	url, ended := start(t, t.Context())
	answer, err := http.Get(url + "/crash")
	require.ErrorIs(t, <-ended, errCrash)
	if err == nil { // the end may come before the answer
		require.NoError(t, answer.Body.Close())
	}
	require.Error(t, run(t.Context(), folder(t), nil, io.Discard))
}

func TestAppHoldsMemory(t *testing.T) {
	held := hold(3)
	assert.Len(t, held, 3<<20)
	assert.False(t, slices.Contains(held, 0))
}

func TestAppKeepsAJournalOfItsStarts(t *testing.T) {
	file := filepath.Join(t.TempDir(), "journal")
	for starts := 1; starts <= 2; starts++ {
		ctx, stop := context.WithCancel(t.Context())
		url, ended := start(t, ctx, "-journal", file)
		code, body := get(t, url+"/journal")
		stop()
		require.NoError(t, <-ended)
		assert.Equal(t, http.StatusOK, code)
		assert.Equal(t, strings.Repeat("v7\n", starts), body)
	}
}
