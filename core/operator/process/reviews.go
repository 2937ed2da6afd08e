package process

import (
	"context"
	"crypto/sha256"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/go-logr/logr"
	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utilcache "k8s.io/apimachinery/pkg/util/cache"
	authenticationclient "k8s.io/client-go/kubernetes/typed/authentication/v1"
	authorizationclient "k8s.io/client-go/kubernetes/typed/authorization/v1"
	"k8s.io/client-go/rest"
)

const (
	// reviewTimeout is how long the API server may take to answer about a request.
	reviewTimeout = 10 * time.Second
	// knownFor is how long an answer counts, and reviewsKept how many answers are kept.
	knownFor    = time.Minute
	reviewsKept = 1000
)

// reviewer answers requests if the API server knows their token and their user may send them. It is not the filter of
// controller-runtime, which links the API server's authentication, policies and tracing into every operator: a third of
// its binary.
type reviewer struct {
	tokens authenticationclient.TokenReviewInterface
	access authorizationclient.SubjectAccessReviewInterface
	known  *utilcache.LRUExpireCache // digest of a token and a request to the code of the answer
	log    logr.Logger
}

func newReviewer(config *rest.Config, log logr.Logger) (*reviewer, error) {
	client, err := rest.HTTPClientFor(config)
	if err != nil {
		return nil, fmt.Errorf("make a client for reviews of tokens: %w", err)
	}
	tokens, err := authenticationclient.NewForConfigAndClient(config, client)
	if err != nil {
		return nil, fmt.Errorf("make a client for reviews of tokens: %w", err)
	}
	access, err := authorizationclient.NewForConfigAndClient(config, client)
	if err != nil {
		return nil, fmt.Errorf("make a client for reviews of access: %w", err)
	}
	return &reviewer{
		tokens: tokens.TokenReviews(),
		access: access.SubjectAccessReviews(),
		known:  utilcache.NewLRUExpireCache(reviewsKept),
		log:    log,
	}, nil
}

// restrict answers requests that the API server allows with the handler: 401 means that it does not know the token, 403
// that the token's user may not send the request, 500 that the API server did not answer.
func (r *reviewer) restrict(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, request *http.Request) {
		switch code := r.review(request); code {
		case http.StatusOK:
			next.ServeHTTP(w, request)
		default:
			http.Error(w, http.StatusText(code), code)
		}
	})
}

// review returns the code of the answer to a request: 200 if it is to be answered.
func (r *reviewer) review(request *http.Request) int {
	scheme, token, _ := strings.Cut(request.Header.Get("Authorization"), " ")
	if token = strings.TrimSpace(token); !strings.EqualFold(scheme, "Bearer") || token == "" {
		return http.StatusUnauthorized
	}
	verb := strings.ToLower(request.Method)
	path := request.URL.Path
	key := sha256.Sum256([]byte(verb + "\x00" + path + "\x00" + token))
	if code, ok := r.known.Get(key); ok {
		return code.(int)
	}
	ctx, cancel := context.WithTimeout(request.Context(), reviewTimeout)
	defer cancel()
	code, err := r.ask(ctx, token, verb, path)
	if err != nil {
		r.log.Error(err, "Failed to review a request", "path", path)
		return http.StatusInternalServerError
	}
	r.known.Add(key, code, knownFor)
	return code
}

func (r *reviewer) ask(ctx context.Context, token, verb, path string) (int, error) {
	who, err := r.tokens.Create(ctx, &authenticationv1.TokenReview{Spec: authenticationv1.TokenReviewSpec{Token: token}}, metav1.CreateOptions{})
	if err != nil {
		return 0, fmt.Errorf("review a token: %w", err)
	}
	if !who.Status.Authenticated {
		return http.StatusUnauthorized, nil
	}
	user := who.Status.User
	extra := make(map[string]authorizationv1.ExtraValue, len(user.Extra))
	for name, values := range user.Extra {
		extra[name] = authorizationv1.ExtraValue(values)
	}
	may, err := r.access.Create(ctx, &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
		User:                  user.Username,
		Groups:                user.Groups,
		UID:                   user.UID,
		Extra:                 extra,
		NonResourceAttributes: &authorizationv1.NonResourceAttributes{Path: path, Verb: verb},
	}}, metav1.CreateOptions{})
	if err != nil {
		return 0, fmt.Errorf("review the access of user %s: %w", user.Username, err)
	}
	if !may.Status.Allowed || may.Status.Denied {
		return http.StatusForbidden, nil
	}
	return http.StatusOK, nil
}
