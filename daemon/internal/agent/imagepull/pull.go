package imagepull

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"time"

	"k8s.io/utils/clock"

	"github.com/flotilla-project/flotilla/core/pods/imageref"
	"github.com/flotilla-project/flotilla/daemon/api/v1beta1"

	"github.com/flotilla-project/flotilla/daemon/internal/agent/cri"
	"github.com/flotilla-project/flotilla/daemon/internal/agent/imagepull/plan"
)

const (
	// The annotation by which runtimes and registries distinguish our pulls from the kubelet's pulls.
	pulledByAnnotation = "apps.kruise.io/pulling-image-by"
	pulledBy           = "kruise-daemon"

	firstPause, longestPause = time.Second, v1beta1.LongestPauseSeconds * time.Second
	// timeoutSlack is how much earlier than the agent the runtime may see the timeout of a call.
	timeoutSlack = 50 * time.Millisecond
)

// errDeadline ends a pull: the time of spec.images[].tags[].pullPolicy.activeDeadlineSeconds is over.
var errDeadline = errors.New("pulling exceeds the activeDeadlineSeconds")

// notStartedError means that a pull was not started because the runtime or the API server was unavailable.
type notStartedError struct{ error }

func (e notStartedError) Unwrap() error { return e.error }

// Credentials finds credentials for registries.
type Credentials interface {
	// For returns the credentials for an image that objects of the namespaces want, the most specific first. None means
	// that the image is pulled anonymously. An error is independent of the image.
	For(ctx context.Context, image string, secrets []v1beta1.SecretReference, namespaces []string) ([]cri.Auth, error)
	// Forget drops the remembered credentials for an image: none of them could pull it.
	Forget(image string, secrets []v1beta1.SecretReference)
}

// puller pulls images into the runtime.
type puller struct {
	node        string
	runtimes    *cri.Runtimes
	credentials Credentials
	clock       clock.Clock
	jitter      func(time.Duration) time.Duration
}

// pull tries until an attempt succeeds, the attempts are used up or the deadline is over. It returns the
// image's ID, or the error of the last attempt. The request is read before every attempt: it may change.
func (p *puller) pull(ctx context.Context, started time.Time, request func() plan.PullRequest) (string, error) {
	pause := firstPause
	for attempts := 0; ; {
		id, err := p.attempt(ctx, request(), started)
		if p.counts(ctx, err) {
			attempts++
		}
		r := request()
		switch {
		case err == nil:
			return id, nil
		case ctx.Err() != nil:
			return "", fmt.Errorf("pulling image %s is stopped", r.Ref)
		case r.Deadline > 0 && p.clock.Since(started) >= r.Deadline:
			return "", errDeadline
		case attempts >= r.Attempts:
			return "", err
		}
		if p.sleep(ctx, pause) != nil {
			return "", fmt.Errorf("pulling image %s is stopped", r.Ref)
		}
		pause = min(2*pause, longestPause)
	}
}

// counts reports whether a failed attempt is the image's: not one that could not begin, and not one that a runtime failed
// that does not work. An attempt that was under way when the runtime became unavailable does count, once that is back: the
// image may have been the cause.
func (p *puller) counts(ctx context.Context, err error) bool {
	switch {
	case err == nil, notStarted(err):
		return false
	case cri.IsUnavailable(err):
		return p.runtimes.Ready() == nil
	}
	runtime, notReady := p.runtimes.ForImages()
	return notReady == nil && runtime.Works(ctx) == nil
}

func (p *puller) sleep(ctx context.Context, length time.Duration) error {
	timer := p.clock.NewTimer(p.jitter(length))
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C():
		return nil
	}
}

// attempt makes one attempt within its time limit.
func (p *puller) attempt(ctx context.Context, r plan.PullRequest, started time.Time) (string, error) {
	timeout := r.Timeout
	if r.Deadline > 0 {
		left := r.Deadline - p.clock.Since(started)
		if left <= 0 {
			return "", errDeadline
		}
		timeout = min(timeout, left)
	}
	limited, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	end := p.clock.Now().Add(timeout - timeoutSlack)
	id, err := p.try(limited, r)
	if err != nil && (limited.Err() != nil || p.clock.Now().After(end)) {
		return "", fmt.Errorf("pulling image %s is canceled: it took longer than %s", r.Ref, timeout)
	}
	return id, err
}

func notStarted(err error) bool {
	_, is := errors.AsType[notStartedError](err)
	return is
}

func (p *puller) try(ctx context.Context, r plan.PullRequest) (string, error) {
	reference, err := r.CRI()
	if err != nil {
		return "", err
	}
	runtime, err := p.runtimes.ForImages()
	if err != nil {
		return "", err
	}
	if !r.Always {
		id, err := findImage(ctx, runtime, reference, r.Ref)
		if err != nil {
			return "", notStartedError{err}
		}
		if id != "" {
			return id, nil
		}
	}
	if err := p.pullWithCredentials(ctx, runtime, reference, r); err != nil {
		return "", err
	}
	id, err := findImage(ctx, runtime, reference, r.Ref)
	if err == nil && id == "" {
		err = fmt.Errorf("image %s was pulled, but the container runtime does not list it", r.Ref)
	}
	return id, err
}

// pullWithCredentials pulls with each of the credentials until one works. Without credentials the pull is anonymous;
// with some that all fail it is not tried: the registry could count that against the node.
func (p *puller) pullWithCredentials(ctx context.Context, runtime *cri.Runtime, reference string, r plan.PullRequest) error {
	pull := cri.Pull{Reference: reference, Sandbox: p.sandbox(r)}
	namespaces := make([]string, len(r.Owners))
	for i := range r.Owners {
		namespaces[i] = r.Owners[i].Namespace
	}
	all, err := p.credentials.For(ctx, reference, r.Secrets, namespaces)
	if err != nil {
		return notStartedError{err}
	}
	if len(all) == 0 {
		return runtime.Pull(ctx, pull)
	}
	var troubles []error
	for i := range all {
		pull.Auth = &all[i]
		err := runtime.Pull(ctx, pull)
		if err == nil {
			return nil
		}
		troubles = append(troubles, err)
	}
	p.credentials.Forget(reference, r.Secrets)
	return errors.Join(troubles...)
}

// sandbox describes a pod to the runtime. Its maps are copies: several pulls share one spec.
func (p *puller) sandbox(r plan.PullRequest) cri.Sandbox {
	s := cri.Sandbox{Name: p.node, Annotations: map[string]string{}}
	if len(r.Owners) > 0 {
		s.Namespace = r.Owners[0].Namespace
		s.UID = string(r.Owners[0].UID)
	}
	if r.Sandbox != nil {
		s.Labels = maps.Clone(r.Sandbox.Labels)
		maps.Copy(s.Annotations, r.Sandbox.Annotations)
	}
	s.Annotations[pulledByAnnotation] = pulledBy
	return s
}

// findImage returns the name and ID of an image; empty if the runtime does not have it.
func findImage(ctx context.Context, runtime *cri.Runtime, reference string, want imageref.Ref) (string, error) {
	image, err := runtime.Image(ctx, reference)
	if image == nil {
		return "", err
	}
	return want.Name + "@" + image.ID, nil
}
