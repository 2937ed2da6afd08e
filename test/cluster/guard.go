package cluster

import (
	"context"
	"crypto/subtle"
	"fmt"
	"net/http"
	"strings"
	"sync"
)

// Repositories whose name begins with PrivatePrefix need basic authentication with these credentials.
const (
	PrivatePrefix   = "private/"
	PrivateUser     = "puller"
	PrivatePassword = "let-me-in"
)

// closedPath is the path of requests that close and open repositories.
const closedPath = "/-/closed/"

// guard handles the requests to the registry first. It requires credentials, and can make single repositories
// unavailable, so that a story can have an outage that does not affect other stories.
type guard struct {
	registry http.Handler

	mu     sync.Mutex
	closed map[string]bool
}

// ServeHTTP implements http.Handler.
func (g *guard) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if repository, ok := strings.CutPrefix(r.URL.Path, closedPath); ok {
		g.set(repository, r.Method == http.MethodPut)
		return
	}
	repository := repositoryOf(r.URL.Path)
	switch {
	case g.isClosed(repository):
		panic(http.ErrAbortHandler) // ends the connection without an answer, as a dead server would
	case strings.HasPrefix(repository, PrivatePrefix) && !knows(r):
		w.Header().Set("WWW-Authenticate", `Basic realm="private images"`)
		http.Error(w, `{"errors":[{"code":"UNAUTHORIZED","message":"authentication required"}]}`, http.StatusUnauthorized)
	default:
		g.registry.ServeHTTP(w, r)
	}
}

func (g *guard) set(repository string, closed bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.closed == nil {
		g.closed = map[string]bool{}
	}
	g.closed[repository] = closed
}

func (g *guard) isClosed(repository string) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.closed[repository]
}

func knows(r *http.Request) bool {
	user, password, ok := r.BasicAuth()
	return ok && user == PrivateUser && subtle.ConstantTimeCompare([]byte(password), []byte(PrivatePassword)) == 1
}

// repositoryOf returns the repository that a path of the distribution API names, empty for none.
func repositoryOf(path string) string {
	rest, ok := strings.CutPrefix(path, "/v2/")
	if !ok {
		return ""
	}
	for _, kind := range []string{"/manifests/", "/blobs/", "/tags/"} {
		if at := strings.LastIndex(rest, kind); at > 0 {
			return rest[:at]
		}
	}
	return ""
}

// CloseRepository makes the registry end every connection that asks for the repository, until OpenRepository.
func (c *Cluster) CloseRepository(ctx context.Context, repository string) error {
	return c.tellRegistry(ctx, http.MethodPut, repository)
}

// OpenRepository ends what CloseRepository began.
func (c *Cluster) OpenRepository(ctx context.Context, repository string) error {
	return c.tellRegistry(ctx, http.MethodDelete, repository)
}

func (c *Cluster) tellRegistry(ctx context.Context, method, repository string) error {
	request, err := http.NewRequestWithContext(ctx, method, "http://"+c.Registry()+closedPath+repository, nil)
	if err != nil {
		return err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return fmt.Errorf("tell the registry: %w", err)
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("tell the registry: %s", response.Status)
	}
	return nil
}
