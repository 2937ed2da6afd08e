package cli

import (
	"context"
	"errors"
	"net"
	"net/url"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/tools/clientcmd"
)

// unconfigured is the server of requests if no kubeconfig names one.
const unconfigured = "http://localhost:8080/"

// Explain returns an error as a user reads it: the failure, and advice for frequent failures.
func Explain(err error) string {
	text := err.Error()
	// Advice after several lines has one of its own.
	next := "; "
	if strings.Contains(text, "\n") {
		next = "\n"
	}
	var request *url.Error
	var dial *net.OpError
	switch {
	case clientcmd.IsEmptyConfig(err), errors.As(err, &request) && errors.As(err, &dial) && strings.HasPrefix(request.URL, unconfigured):
		return "no cluster is configured: set KUBECONFIG, --kubeconfig or --context"
	case errors.Is(err, context.Canceled):
		return "interrupted: " + text
	case apierrors.IsUnauthorized(err):
		return text + next + "the cluster rejects these credentials: log in again, or use others with --context"
	case apierrors.IsForbidden(err):
		return text + next + "ask an administrator of the cluster for this permission, or use other credentials with --context"
	case errors.As(err, &request) && errors.As(err, &dial):
		return text + next + "the cluster cannot be reached: check the address of the API server in the kubeconfig"
	}
	return text
}
