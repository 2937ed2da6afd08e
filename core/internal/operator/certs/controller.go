package certs

import (
	"context"
	"crypto"
	"errors"
	"fmt"
	"io"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/flowcontrol"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const (
	// resync is the time between two passes without an event: certificates expire without one.
	resync = time.Minute

	// Retries are fast at first, because at a first start the other replicas do the same work.
	firstRetry, slowestRetry = 20 * time.Millisecond, 10 * time.Second

	// If another client overwrites bundles in a loop, they are restored at once, but not without limit: this many writes
	// at once, and this many a second after that.
	writeBurst, writeRate = 30, 1
)

// Options are the settings of a Controller.
type Options struct {
	// Config is the client configuration.
	Config *rest.Config
	// Settings are the names of the Secret and the server.
	Settings Settings
	// Mutating and Validating are the names of the webhook configurations to keep up to date; they have to exist.
	Mutating, Validating []string
	// CRDs are the names of definitions to keep up to date if this server is their conversion webhook; they may be
	// created later.
	CRDs []string
	// External means that the Secret with the certificates is maintained externally; bundles are only checked.
	External bool
	Clock    clock.WithTicker
	// Random is the source of randomness for keys and serial numbers.
	Random io.Reader
	// NewKey generates private keys. Nil means NewRSAKey.
	NewKey func(io.Reader) (crypto.Signer, error)
	Log    logr.Logger
}

// Controller keeps the certificates of one operator up to date. Every replica runs one, leader or not.
type Controller struct {
	options   Options
	authority Authority
	client    client.Client

	secret  watched
	targets []watched
	crds    int // the last so many targets may be absent

	queue   workqueue.TypedRateLimitingInterface[string]
	limiter flowcontrol.PassiveRateLimiter
	writes  *prometheus.CounterVec

	source      Source
	initialized chan struct{}
	once        sync.Once
	failure     atomic.Pointer[error]
}

// New returns a controller. It does nothing before Start.
func New(options Options) (*Controller, error) {
	api, err := newClient(options.Config)
	if err != nil {
		return nil, fmt.Errorf("make client for certificates: %w", err)
	}
	if options.NewKey == nil {
		options.NewKey = NewRSAKey
	}
	settings := options.Settings
	c := &Controller{
		options: options,
		authority: Authority{
			Names:       settings.Names(),
			RenewBefore: settings.RenewBefore,
			Random:      options.Random,
			NewKey:      options.NewKey,
		},
		client: api,
		secret: watchSecret(api, client.ObjectKey{Namespace: settings.Namespace, Name: settings.SecretName}),
		crds:   len(options.CRDs),
		queue: workqueue.NewTypedRateLimitingQueue(
			workqueue.NewTypedItemExponentialFailureRateLimiter[string](firstRetry, slowestRetry)),
		limiter:     flowcontrol.NewTokenBucketPassiveRateLimiterWithClock(writeRate, writeBurst, options.Clock),
		writes:      newWrites(),
		initialized: make(chan struct{}),
	}
	for _, name := range options.Mutating {
		c.targets = append(c.targets, watchMutating(api, name))
	}
	for _, name := range options.Validating {
		c.targets = append(c.targets, watchValidating(api, name))
	}
	for _, name := range options.CRDs {
		c.targets = append(c.targets, watchCRD(api, name))
	}
	return c, nil
}

// Source returns the source of the webhook server's certificate.
func (c *Controller) Source() *Source { return &c.source }

// Initialized returns a channel that is closed when the certificates are everywhere for the first time.
func (c *Controller) Initialized() <-chan struct{} { return c.initialized }

// Err returns why the last pass failed, nil if everything is up to date.
func (c *Controller) Err() error {
	if failure := c.failure.Load(); failure != nil {
		return *failure
	}
	return nil
}

// NeedLeaderElection returns false: every replica needs the certificates.
func (c *Controller) NeedLeaderElection() bool { return false }

// Start keeps the certificates until ctx ends.
func (c *Controller) Start(ctx context.Context) error {
	defer c.queue.ShutDown()
	wake := func() { c.queue.Add("") }

	notSynced := errors.New("watches are not in sync yet: the log shows missing permissions")
	c.failure.Store(&notSynced)
	synced := []cache.InformerSynced{c.secret.informer.HasSynced}
	for _, object := range append([]watched{c.secret}, c.targets...) {
		if err := object.start(ctx, wake); err != nil {
			return err
		}
		synced = append(synced, object.informer.HasSynced)
	}
	if !cache.WaitForCacheSync(ctx.Done(), synced...) {
		return nil // ctx ended first
	}

	wake()
	go c.tick(ctx, wake)
	for c.next(ctx) {
	}
	return nil
}

func (c *Controller) tick(ctx context.Context, wake func()) {
	ticker := c.options.Clock.NewTicker(resync)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			c.queue.ShutDown()
			return
		case <-ticker.C():
			wake()
		}
	}
}

// next runs one pass, and reports whether there may be another.
func (c *Controller) next(ctx context.Context) bool {
	key, shutdown := c.queue.Get()
	if shutdown || ctx.Err() != nil {
		return false
	}
	defer c.queue.Done(key)

	err := c.pass(ctx)
	c.failure.Store(&err)
	if err != nil {
		c.options.Log.Info("Certificates are not ready, trying again", "reason", err.Error())
		c.queue.AddRateLimited(key)
		return true
	}
	c.queue.Forget(key)
	c.once.Do(func() { close(c.initialized) })
	return true
}

// pass reads the cache first, and the server only if something is to be done: a write is never decided on data older
// than the read that came before it.
func (c *Controller) pass(ctx context.Context) error {
	seen, err := c.observe(ctx, func(_ context.Context, object watched) (client.Object, error) { return object.cached() })
	if err != nil {
		return err
	}
	if c.options.External {
		return c.follow(seen)
	}
	if plan, err := c.plan(seen); err == nil && !plan.Write && seen.haveBundle(plan.Content.Bundle()) {
		return errors.Join(c.serve(plan.Content), seen.missing)
	}

	seen, err = c.observe(ctx, func(ctx context.Context, object watched) (client.Object, error) { return object.live(ctx, c.client) })
	if err != nil {
		return err
	}
	return c.apply(ctx, seen)
}

// observation is the state that one pass read from the cluster.
type observation struct {
	secret  *corev1.Secret // nil when there is none
	targets []client.Object
	missing error // configurations that should exist and do not
}

// observe reads the targets first and the Secret last. A bundle that another replica wrote after the targets
// were read makes a write fail; one that it wrote before comes with a Secret at least as new.
func (c *Controller) observe(ctx context.Context, read func(context.Context, watched) (client.Object, error)) (observation, error) {
	var seen observation
	for i, target := range c.targets {
		object, err := read(ctx, target)
		if err != nil {
			return seen, fmt.Errorf("read %s %s: %w", kindOf(target.empty()), target.key.Name, err)
		}
		switch {
		case object != nil && !c.options.Settings.convertedByOthers(object):
			seen.targets = append(seen.targets, object)
		case object == nil && i < len(c.targets)-c.crds:
			seen.missing = errors.Join(seen.missing, fmt.Errorf("not found %s %s", kindOf(target.empty()), target.key.Name))
		}
	}
	object, err := read(ctx, c.secret)
	if err != nil {
		return seen, fmt.Errorf("read Secret %s: %w", c.secret.key, err)
	}
	if object != nil {
		seen.secret = object.(*corev1.Secret)
	}
	return seen, nil
}

// haveBundle reports whether every target has exactly this bundle.
func (o observation) haveBundle(bundle []byte) bool {
	for _, target := range o.targets {
		if patch, err := injection(target, bundle); err != nil || patch != nil {
			return false
		}
	}
	return true
}

func (c *Controller) plan(seen observation) (Plan, error) {
	snapshot := Snapshot{Now: c.options.Clock.Now(), Remembered: c.source.content()}
	if seen.secret != nil {
		stored := readContent(seen.secret.Data)
		snapshot.Stored = &stored
		snapshot.Incomplete = !stored.completes(seen.secret.Data)
		snapshot.Published = seen.missing == nil && seen.haveBundle(stored.Bundle())
	}
	return c.authority.Plan(snapshot)
}

// apply stores, publishes and serves, in this order: a certificate is used only after its CA is trusted.
func (c *Controller) apply(ctx context.Context, seen observation) error {
	plan, err := c.plan(seen)
	if err != nil {
		return fmt.Errorf("plan certificates: %w", err)
	}
	if plan.Write {
		if err := c.store(ctx, seen.secret, plan); err != nil {
			return err
		}
	}
	var failed error // a target that cannot be written now delays no other
	for _, target := range seen.targets {
		failed = errors.Join(failed, c.publish(ctx, target, plan.Content.Bundle()))
	}
	if failed != nil {
		return failed
	}
	return errors.Join(c.serve(plan.Content), seen.missing)
}

// store writes the Secret in the version that the plan was made from. If another replica was faster it is an error: the
// retry reads the Secret of that replica.
func (c *Controller) store(ctx context.Context, secret *corev1.Secret, plan Plan) error {
	c.writes.WithLabelValues("Secret").Inc()
	c.options.Log.Info("Write certificates", "secret", c.secret.key, "reason", plan.Reason)
	if secret == nil {
		secret = &corev1.Secret{
			ObjectMeta: metav1.ObjectMeta{Namespace: c.secret.key.Namespace, Name: c.secret.key.Name},
			Data:       plan.Content.Data(nil),
		}
		if err := c.client.Create(ctx, secret); err != nil {
			return fmt.Errorf("create Secret %s: %w", c.secret.key, err)
		}
		return nil
	}
	secret.Data = plan.Content.Data(secret.Data)
	if err := c.client.Update(ctx, secret); err != nil {
		return fmt.Errorf("update Secret %s: %w", c.secret.key, err)
	}
	return nil
}

// publish writes the bundle into one webhook configuration or CRD.
func (c *Controller) publish(ctx context.Context, target client.Object, bundle []byte) error {
	patch, err := injection(target, bundle)
	if err != nil || patch == nil {
		return err
	}
	if !c.limiter.TryAccept() {
		return fmt.Errorf("wait before writing caBundle of %s %s again: another client keeps overwriting it", kindOf(target), target.GetName())
	}
	c.writes.WithLabelValues(kindOf(target)).Inc()
	c.options.Log.Info("Write caBundle", "kind", kindOf(target), "name", target.GetName())
	if err := c.client.Patch(ctx, target, client.RawPatch(types.JSONPatchType, patch)); err != nil {
		if apierrors.IsInvalid(err) {
			err = fmt.Errorf("another client has changed it: %w", err) // a test of the patch failed
		}
		return fmt.Errorf("write caBundle of %s %s: %w", kindOf(target), target.GetName(), err)
	}
	return nil
}

// serve switches to the serving certificate of content if it is a new one.
func (c *Controller) serve(content Content) error {
	if current := c.source.content(); current != nil && current.equal(content) {
		return nil
	}
	return c.source.serve(content)
}

// follow serves external certificates and checks that all targets trust them. Another client writes the targets later
// than the Secret: until all of them trust a new certificate, the one before is served, as long as it is valid.
func (c *Controller) follow(seen observation) error {
	if seen.secret == nil {
		return fmt.Errorf("not found Secret %s with external certificates", c.secret.key)
	}
	content := readExternal(seen.secret.Data)
	var untrusted []error
	for _, target := range seen.targets {
		untrusted = append(untrusted, checkExternal(target, content.CA.Certificate))
	}
	trust := errors.Join(untrusted...)
	if trust != nil && c.source.validAt(c.options.Clock.Now()) {
		return errors.Join(seen.missing, trust)
	}
	return errors.Join(c.serve(content), seen.missing, trust)
}
