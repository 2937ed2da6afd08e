package admission

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

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
	limit := newLimit(10, 10)
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
	converting := Converting(func(raw []byte, _ string) ([]byte, error) { return raw, nil })
	body := &endless{}
	recorder := httptest.NewRecorder()
	converting.ServeHTTP(recorder, httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/convert", io.MultiReader(strings.NewReader(`{"kind":"`), ones{body})))
	assert.Equal(t, http.StatusRequestEntityTooLarge, recorder.Code)
	assert.LessOrEqual(t, body.read, maxConversion+1<<20)
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
	limit := newLimit(10, 10)
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
