package admission

import (
	"context"
	"time"

	"golang.org/x/time/rate"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// ReadTimeout limits one read of a webhook, which has to answer before the API server's timeout.
const ReadTimeout = 2 * time.Second

// LimitReads returns a reader that gets no more often than the limiter allows, because anybody who can reach a webhook
// can cause reads. A caller that would have to wait longer than ReadTimeout gets the error TooManyRequests. Lists are
// not limited.
func LimitReads(r client.Reader, limiter *rate.Limiter) client.Reader {
	return limitedReader{Reader: r, limiter: limiter}
}

type limitedReader struct {
	client.Reader
	limiter *rate.Limiter
}

// Get implements client.Reader.
func (r limitedReader) Get(ctx context.Context, key client.ObjectKey, object client.Object, options ...client.GetOption) error {
	ctx, cancel := context.WithTimeout(ctx, ReadTimeout)
	defer cancel()
	if r.limiter.Wait(ctx) != nil {
		return apierrors.NewTooManyRequests("too many requests; retry", 1)
	}
	return r.Reader.Get(ctx, key, object, options...)
}
