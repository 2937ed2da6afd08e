package images

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"sync"
)

// authorizer adds what a registry asks for in its answer 401: the credentials, or a token that its token server gives for
// these. It keeps a token for each repository.
type authorizer struct {
	next http.RoundTripper
	// base is the address of the registry. No other host gets a header.
	base        *url.URL
	credentials func(context.Context) (credentials, error)

	mutex   sync.Mutex
	headers map[string]string
}

// RoundTrip sends a request, and sends it again with an authorization if it is refused without.
func (a *authorizer) RoundTrip(request *http.Request) (*http.Response, error) {
	if request.URL.Host != a.base.Host || request.URL.Scheme != a.base.Scheme {
		return a.next.RoundTrip(request) // an upload to a storage that the registry names
	}
	repository := repositoryOf(request.URL.Path)
	header := a.header(repository)
	answer, err := a.next.RoundTrip(with(request, header, request.Body))
	if err != nil || answer.StatusCode != http.StatusUnauthorized {
		return answer, err
	}
	challenge := answer.Header.Values("WWW-Authenticate")
	_ = answer.Body.Close() // the headers say all
	if header, err = a.authorize(request.Context(), challenge, repository); err != nil {
		return nil, err
	}
	a.mutex.Lock()
	a.headers[repository] = header
	a.mutex.Unlock()
	body := request.Body
	if request.GetBody != nil {
		if body, err = request.GetBody(); err != nil {
			return nil, err
		}
	}
	return a.next.RoundTrip(with(request, header, body))
}

func (a *authorizer) header(repository string) string {
	a.mutex.Lock()
	defer a.mutex.Unlock()
	return a.headers[repository]
}

func with(request *http.Request, header string, body io.ReadCloser) *http.Request {
	copied := request.Clone(request.Context())
	copied.Body = body
	if header != "" {
		copied.Header.Set("Authorization", header)
	}
	return copied
}

// repositoryOf returns the repository in the path of a request to a registry.
func repositoryOf(path string) string {
	path = strings.TrimPrefix(path, "/v2/")
	for _, part := range []string{"/blobs/", "/manifests/"} {
		if before, _, found := strings.Cut(path, part); found {
			return before
		}
	}
	return ""
}

// authorize returns the header that answers a challenge.
func (a *authorizer) authorize(ctx context.Context, challenges []string, repository string) (string, error) {
	known, err := a.credentials(ctx)
	if err != nil {
		return "", err
	}
	for _, challenge := range challenges {
		scheme, parameters := parseChallenge(challenge)
		switch {
		case scheme == "bearer":
			return a.token(ctx, parameters, repository, known)
		case scheme == "basic" && known.user != "":
			request := &http.Request{Header: http.Header{}}
			request.SetBasicAuth(known.user, known.password)
			return request.Header.Get("Authorization"), nil
		}
	}
	return "", fmt.Errorf("registry %s refuses access without credentials: log in with your container tool, as in docker login %[1]s", a.base.Host)
}

var parameter = regexp.MustCompile(`(\w+)="([^"]*)"`)

// parseChallenge divides a WWW-Authenticate header.
func parseChallenge(challenge string) (scheme string, parameters map[string]string) {
	scheme, rest, _ := strings.Cut(challenge, " ")
	parameters = map[string]string{}
	for _, found := range parameter.FindAllStringSubmatch(rest, -1) {
		parameters[strings.ToLower(found[1])] = found[2]
	}
	return strings.ToLower(scheme), parameters
}

// token asks the token server of a challenge for the rights to push to a repository.
func (a *authorizer) token(ctx context.Context, parameters map[string]string, repository string, known credentials) (string, error) {
	realm, err := url.Parse(parameters["realm"])
	if err != nil || realm.Host == "" {
		return "", fmt.Errorf("registry %s names token server %q, which is no address", a.base.Host, parameters["realm"])
	}
	if a.base.Scheme == "https" && realm.Scheme != "https" {
		return "", fmt.Errorf("registry %s names token server %s without TLS: no credentials are sent to it", a.base.Host, realm)
	}
	request, err := tokenRequest(ctx, realm, parameters["service"], "repository:"+repository+":pull,push", known)
	if err != nil {
		return "", err
	}
	answer, err := a.next.RoundTrip(request)
	if err != nil {
		return "", fmt.Errorf("get a token from %s: %w", realm.Host, err)
	}
	defer func() { _ = answer.Body.Close() }() // it was only read
	text, err := io.ReadAll(io.LimitReader(answer.Body, mostOfAnswer))
	if err != nil {
		return "", fmt.Errorf("get a token from %s: %w", realm.Host, err)
	}
	if answer.StatusCode != http.StatusOK {
		return "", fmt.Errorf("get a token from %s for repository %s: %s: check the permission to push, or log in again with your container tool",
			realm.Host, repository, answer.Status)
	}
	var given struct {
		Token  string `json:"token"`
		Access string `json:"access_token"`
	}
	if err := json.Unmarshal(text, &given); err != nil {
		return "", fmt.Errorf("read the token of %s: %w", realm.Host, err)
	}
	if given.Token == "" {
		given.Token = given.Access
	}
	if given.Token == "" {
		return "", errors.New("the answer of token server " + realm.Host + " has no token")
	}
	return "Bearer " + given.Token, nil
}

// tokenRequest asks with user and password, with an identity token, or for an anonymous token.
func tokenRequest(ctx context.Context, realm *url.URL, service, scope string, known credentials) (*http.Request, error) {
	values := url.Values{"scope": {scope}}
	if service != "" {
		values.Set("service", service)
	}
	if known.identity != "" {
		values.Set("grant_type", "refresh_token")
		values.Set("refresh_token", known.identity)
		values.Set("client_id", "flotilla")
		request, err := http.NewRequestWithContext(ctx, http.MethodPost, realm.String(), strings.NewReader(values.Encode()))
		if err == nil {
			request.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		}
		return request, err
	}
	query := realm.Query()
	for key := range values {
		query.Set(key, values.Get(key))
	}
	address := *realm
	address.RawQuery = query.Encode()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, address.String(), nil)
	if err == nil && known.user != "" {
		request.SetBasicAuth(known.user, known.password)
	}
	return request, err
}
