package containerstop

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/go-logr/logr"

	"github.com/flotilla-project/flotilla/core/plan/action"

	"github.com/flotilla-project/flotilla/daemon/internal/agent/cri"
	"github.com/flotilla-project/flotilla/daemon/internal/prestop"
)

// connectTimeout is how long a connection to the server of a hook may take. Packets that a NetworkPolicy drops get no
// answer: the kubelet calls from the node, which such policies let through, and the agent from a pod.
const connectTimeout = 2 * time.Second

// Errors of the HTTP request of a hook, as events show them. They quote neither the server, which may be anyone's, nor
// errors about it: the pod's author sets host and port, and may not be allowed to reach them.
var (
	errNoConnection = errors.New("the node agent cannot connect to the HTTP server: a NetworkPolicy must allow pods of the agent's namespace")
	errLoopback     = errors.New("the host is a loopback address, and the node agent has a different network than the pod")
	errNoAnswer     = errors.New("the HTTP server returned an invalid response")
)

// hook runs a preStop hook within the grace of the request.
func (s *Stopper) hook(ctx context.Context, o *Request) error {
	runtime, err := s.Runtimes.ForContainer(o.Container.ID)
	if err != nil {
		return err
	}
	limited, cancel := context.WithTimeout(ctx, o.Grace)
	defer cancel()
	switch h := o.PreStop; {
	case h.Exec != nil:
		_, err = runtime.Exec(limited, o.Container.ID, h.Exec.Command, o.Grace)
	case h.HTTPGet != nil:
		err = s.get(limited, runtime, o)
	case h.Sleep != nil:
		err = s.sleep(limited, action.Seconds(h.Sleep.Seconds))
	case h.TCPSocket != nil: // the kubelet does nothing either
	}
	if err != nil && limited.Err() != nil && !errors.Is(err, errNoConnection) {
		return fmt.Errorf("it took longer than the grace period of %s", o.Grace)
	}
	return err
}

func (s *Stopper) sleep(ctx context.Context, length time.Duration) error {
	timer := s.Clock.NewTimer(length)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C():
		return nil
	}
}

// get sends the request of a hook. As in the kubelet, certificates of pods are not checked.
func (s *Stopper) get(ctx context.Context, runtime *cri.Runtime, o *Request) error {
	hook := o.PreStop.HTTPGet
	target, err := s.address(ctx, runtime, o)
	if err != nil {
		return err
	}
	path, err := url.Parse(hook.Path)
	if err != nil {
		return fmt.Errorf("path %q: %w", hook.Path, err)
	}
	path.Scheme = strings.ToLower(string(hook.Scheme))
	path.Host = target
	if path.Scheme == "" {
		path.Scheme = "http"
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, path.String(), nil)
	if err != nil {
		return err
	}
	for _, header := range hook.HTTPHeaders {
		request.Header.Add(header.Name, header.Value)
		if strings.EqualFold(header.Name, "Host") {
			request.Host = header.Value
		}
	}
	transport := &http.Transport{
		DisableKeepAlives: true,
		DialContext:       dial,
		TLSClientConfig:   &tls.Config{InsecureSkipVerify: true}, //nolint:gosec // pods have certificates of their own making
	}
	response, err := transport.RoundTrip(request)
	switch {
	case errors.Is(err, errNoConnection):
		return errNoConnection
	case err != nil:
		logr.FromContextOrDiscard(ctx).V(1).Info("The HTTP request of a preStop hook failed", "container", o.Container.ID, "reason", err.Error())
		return errNoAnswer
	}
	defer response.Body.Close()
	if response.StatusCode >= http.StatusBadRequest {
		return fmt.Errorf("the response has status code %d", response.StatusCode)
	}
	return nil
}

func dial(ctx context.Context, network, address string) (net.Conn, error) {
	connection, err := (&net.Dialer{Timeout: connectTimeout}).DialContext(ctx, network, address)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errNoConnection, err)
	}
	return connection, nil
}

// address returns host and port of a hook. Without a host it is the pod's own address.
func (s *Stopper) address(ctx context.Context, runtime *cri.Runtime, o *Request) (string, error) {
	hook := o.PreStop.HTTPGet
	port, err := portNumber(o)
	if err != nil {
		return "", err
	}
	host := hook.Host
	if prestop.IsLoopback(host) {
		return "", errLoopback
	}
	if host == "" {
		if host, err = runtime.PodIP(ctx, o.Container.SandboxID); err != nil {
			return "", fmt.Errorf("find the IP address of the pod: %w", err)
		}
	}
	if host == "" {
		host = s.HostIP // a pod in the node's network has no other
	}
	if host == "" {
		return "", errors.New("the IP addresses of the pod and of the node are unknown")
	}
	return net.JoinHostPort(host, strconv.Itoa(port)), nil
}

func portNumber(o *Request) (int, error) {
	hook := o.PreStop.HTTPGet
	if n := hook.Port.IntValue(); n > 0 {
		return n, nil
	}
	for _, port := range o.Ports {
		if port.Name == hook.Port.String() {
			return int(port.ContainerPort), nil
		}
	}
	return 0, fmt.Errorf("the container has no port %q", hook.Port.String())
}
