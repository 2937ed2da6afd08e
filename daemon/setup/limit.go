package setup

import (
	"context"
	"time"

	"golang.org/x/time/rate"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// readTimeout limits one read of a webhook, which has to answer before the API server's timeout.
const readTimeout = 2 * time.Second

// limitedReader reads no more often than the limiter allows, because anybody who can reach a webhook can cause reads. A
// caller that would have to wait longer than readTimeout gets the error TooManyRequests.
type limitedReader struct {
	client.Reader
	limiter *rate.Limiter
}

// Get implements client.Reader.
func (r limitedReader) Get(ctx context.Context, key client.ObjectKey, object client.Object, options ...client.GetOption) error {
	ctx, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	if r.limiter.Wait(ctx) != nil {
		return apierrors.NewTooManyRequests("too many requests; retry", 1)
	}
	return r.Reader.Get(ctx, key, object, options...)
}
