package admission

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// endless is a body that says no length and does not end.
type endless struct{ read int }

func (e *endless) Read(into []byte) (int, error) {
	e.read += len(into)
	return len(into), nil
}

func TestBodiesAreBounded(t *testing.T) {
	echo := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(w, r.Body)
	})
	limit := newLimit(10, 10, 10)
	ask := func(body io.Reader) *httptest.ResponseRecorder {
		recorder := httptest.NewRecorder()
		limit.Handle(echo).ServeHTTP(recorder, httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/", body))
		return recorder
	}
	assert.Equal(t, "0123456789", ask(strings.NewReader("0123456789")).Body.String())
	assert.Equal(t, "unsaid", ask(io.MultiReader(strings.NewReader("unsaid"))).Body.String(), "its length is not said")
	tooLong := ask(strings.NewReader("0123456789+"))
	assert.Equal(t, http.StatusRequestEntityTooLarge, tooLong.Code)
	assert.Contains(t, tooLong.Body.String(), "larger than 10 bytes")
	body := &endless{}
	assert.Equal(t, http.StatusRequestEntityTooLarge, ask(body).Code)
	assert.Less(t, body.read, 10_000)
	assert.Equal(t, "again", ask(strings.NewReader("again")).Body.String(), "nothing of the limit was lost")
}

func TestConversionsThatAreTooLargeAreNotRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) { // so many bytes may take a slow machine longer than readTimeout
		converting := Converting(func(raw []byte, _ string) ([]byte, error) { return raw, nil })
		body := &endless{}
		recorder := httptest.NewRecorder()
		converting.ServeHTTP(recorder, httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/convert", io.MultiReader(strings.NewReader(`{"kind":"`), ones{body})))
		assert.Equal(t, http.StatusRequestEntityTooLarge, recorder.Code)
		assert.LessOrEqual(t, body.read, maxConversion+1<<20)
	})
}

// ones is an endless text.
type ones struct{ *endless }

func (o ones) Read(into []byte) (int, error) {
	if o.read > 4*maxConversion { // whoever reads on would do so for ever
		return 0, io.EOF
	}
	copy(into, bytes.Repeat([]byte("1"), len(into)))
	return o.endless.Read(into)
}

func TestRequestsShareTheLimit(t *testing.T) {
	begun, end := make(chan string), make(chan struct{})
	limit := newLimit(10, 10, 10)
	handler := limit.Handle(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		begun <- string(body)
		<-end
	}))
	send := func(ctx context.Context, body string) <-chan struct{} {
		done := make(chan struct{})
		request := httptest.NewRequestWithContext(ctx, http.MethodPost, "/", strings.NewReader(body))
		go func() {
			handler.ServeHTTP(httptest.NewRecorder(), request)
			close(done)
		}()
		return done
	}
	first := send(t.Context(), "12345678")
	require.Equal(t, "12345678", <-begun)
	impatient, leave := context.WithCancel(t.Context())
	gone := send(impatient, "123")
	leave()
	<-gone // without its turn: begun was not read
	second := send(t.Context(), "123")
	end <- struct{}{}
	<-first
	require.Equal(t, "123", <-begun)
	end <- struct{}{}
	<-second
}

// slowly sends requests to the server until the test ends, each of which announces so many bytes and sends a few.
func slowly(t *testing.T, server *httptest.Server, announced int, clients int) {
	t.Helper()
	var all sync.WaitGroup
	ctx, stop := context.WithCancel(t.Context())
	t.Cleanup(func() { stop(); all.Wait() })
	for range clients {
		all.Go(func() {
			for ctx.Err() == nil {
				c, err := (&net.Dialer{}).DialContext(ctx, "tcp", server.Listener.Addr().String())
				if err != nil {
					continue
				}
				end := context.AfterFunc(ctx, func() { _ = c.Close() })
				_, _ = fmt.Fprintf(c, "POST /x HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n{", announced)
				_, _ = io.Copy(io.Discard, c) // until it is cut off
				end()
				_ = c.Close()
			}
		})
	}
	<-time.After(300 * time.Millisecond)
}

// Clients that announce much and send next to nothing take nothing away from others: the API server waits five seconds for
// most answers, and thirty for a conversion.
func TestSlowClientsHoldUpNobody(t *testing.T) {
	t.Parallel()
	echo := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { _, _ = io.Copy(w, r.Body) })
	converting := Converting(func(raw []byte, _ string) ([]byte, error) { return raw, nil })
	for name, story := range map[string]struct {
		handler   http.Handler
		announced int
		body      string
	}{
		"reviews":     {Reviews().Handle(echo), maxReview, "{}"},
		"conversions": {converting, maxConversion, `{"request":{"uid":"1","desiredAPIVersion":"a/v1","objects":[]}}`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := httptest.NewServer(story.handler)
			t.Cleanup(server.Close)
			slowly(t, server, story.announced, 20)
			for range 8 {
				ctx, cancel := context.WithTimeout(t.Context(), 15*time.Second)
				request, err := http.NewRequestWithContext(ctx, http.MethodPost, server.URL, strings.NewReader(story.body))
				require.NoError(t, err)
				answer, err := http.DefaultClient.Do(request)
				if assert.NoError(t, err) {
					assert.Equal(t, http.StatusOK, answer.StatusCode)
					assert.NoError(t, answer.Body.Close())
				}
				cancel()
			}
		})
	}
}

// A client that does not send on is cut off, and what it had is free again.
func TestAClientThatStallsIsCutOff(t *testing.T) {
	t.Parallel()
	limit := newLimit(10, 10, 10)
	server := httptest.NewServer(limit.Handle(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {})))
	t.Cleanup(server.Close)
	c, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", server.Listener.Addr().String())
	require.NoError(t, err)
	_, err = io.WriteString(c, "POST /x HTTP/1.1\r\nHost: x\r\nContent-Length: 10\r\n\r\n{")
	require.NoError(t, err)
	answer, err := io.ReadAll(c)
	require.NoError(t, err)
	assert.Contains(t, string(answer), "400 Bad Request")
	assert.Contains(t, string(answer), "the request is incomplete")
	assert.Empty(t, limit.room.guests)
}
