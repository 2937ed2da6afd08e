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
	// The annotation by which runtimes and registries tell our pulls from the kubelet's.
	pulledByAnnotation = "apps.kruise.io/pulling-image-by"
	pulledBy           = "kruise-daemon"

	firstPause, longestPause = time.Second, 30 * time.Second
	// timeoutSlack is how much earlier than ours the runtime's clock may say that the time of a call is over.
	timeoutSlack = 50 * time.Millisecond
)

// errDeadline ends a pull: spec.images[].tags[].pullPolicy.activeDeadlineSeconds is over.
var errDeadline = errors.New("pulling exceeds the activeDeadlineSeconds")

// notBegunError means that a pull was not begun because the runtime was away.
type notBegunError struct{ error }

func (e notBegunError) Unwrap() error { return e.error }

// Credentials finds what a registry may accept.
type Credentials interface {
	// For returns the credentials for an image, the most specific first. None means that the image is pulled
	// anonymously.
	For(ctx context.Context, image string, secrets []v1beta1.SecretReference) []cri.Auth
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
// image's ID, or the error of the last attempt. The order is asked for before every attempt: it may change.
// Attempts at which the runtime is away do not count: they say nothing about the image. One that was under way does.
func (p *puller) pull(ctx context.Context, started time.Time, order func() plan.Order) (string, error) {
	pause := firstPause
	for attempts := 0; ; {
		id, err := p.attempt(ctx, order(), started)
		if !notBegun(err) && (!cri.IsAway(err) || p.runtimes.Ready() == nil) {
			attempts++
		}
		o := order()
		switch {
		case err == nil:
			return id, nil
		case ctx.Err() != nil:
			return "", fmt.Errorf("pulling image %s is stopped", o.Ref)
		case o.Deadline > 0 && p.clock.Since(started) >= o.Deadline:
			return "", errDeadline
		case attempts >= o.Attempts:
			return "", err
		}
		if p.pause(ctx, pause) != nil {
			return "", fmt.Errorf("pulling image %s is stopped", o.Ref)
		}
		pause = min(2*pause, longestPause)
	}
}

func (p *puller) pause(ctx context.Context, length time.Duration) error {
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
func (p *puller) attempt(ctx context.Context, o plan.Order, started time.Time) (string, error) {
	timeout := o.Timeout
	if o.Deadline > 0 {
		left := o.Deadline - p.clock.Since(started)
		if left <= 0 {
			return "", errDeadline
		}
		timeout = min(timeout, left)
	}
	limited, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	end := p.clock.Now().Add(timeout - timeoutSlack)
	id, err := p.try(limited, o)
	if err != nil && (limited.Err() != nil || p.clock.Now().After(end)) {
		return "", fmt.Errorf("pulling image %s is canceled: it took longer than %s", o.Ref, timeout)
	}
	return id, err
}

func notBegun(err error) bool {
	_, is := errors.AsType[notBegunError](err)
	return is
}

func (p *puller) try(ctx context.Context, o plan.Order) (string, error) {
	reference, err := o.CRI()
	if err != nil {
		return "", err
	}
	runtime, err := p.runtimes.ForImages()
	if err != nil {
		return "", err
	}
	if !o.Always {
		id, err := present(ctx, runtime, o.Ref)
		switch {
		case cri.IsAway(err):
			return "", notBegunError{err}
		case err != nil || id != "":
			return id, err
		}
	}
	if err := p.fetch(ctx, runtime, reference, o); err != nil {
		return "", err
	}
	id, err := present(ctx, runtime, o.Ref)
	if err == nil && id == "" {
		err = fmt.Errorf("image %s is pulled, and the container runtime does not list it", o.Ref)
	}
	return id, err
}

// fetch pulls with each of the credentials until one works. Without credentials the pull is anonymous; with
// some that all fail it is not tried: the registry could count that against the node.
func (p *puller) fetch(ctx context.Context, runtime *cri.Runtime, reference string, o plan.Order) error {
	pull := cri.Pull{Reference: reference, Sandbox: p.sandbox(o)}
	all := p.credentials.For(ctx, reference, o.Secrets)
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
	return errors.Join(troubles...)
}

// sandbox stands for a pod. Its maps are copies: several pulls share one spec.
func (p *puller) sandbox(o plan.Order) cri.Sandbox {
	s := cri.Sandbox{Name: p.node, Annotations: map[string]string{}}
	if len(o.Owners) > 0 {
		s.Namespace, s.UID = o.Owners[0].Namespace, string(o.Owners[0].UID)
	}
	if o.Sandbox != nil {
		s.Labels = maps.Clone(o.Sandbox.Labels)
		maps.Copy(s.Annotations, o.Sandbox.Annotations)
	}
	s.Annotations[pulledByAnnotation] = pulledBy
	return s
}

// present returns the name and ID of an image that the runtime has, and nothing for one that it has not.
func present(ctx context.Context, runtime *cri.Runtime, want imageref.Ref) (string, error) {
	images, err := runtime.Images(ctx)
	if err != nil {
		return "", err
	}
	for i := range images {
		names := images[i].Tags
		if want.IsDigest() {
			names = images[i].Digests
		}
		for _, name := range names {
			if ref, err := imageref.Parse(name); err == nil && ref == want {
				return want.Name + "@" + images[i].ID, nil
			}
		}
	}
	return "", nil
}
