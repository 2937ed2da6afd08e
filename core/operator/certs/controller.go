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
	// resync finds out that time has passed: certificates grow old without an event.
	resync = time.Minute

	// Retries come fast at first, because at a first start the other replicas do the same work.
	firstRetry, slowestRetry = 20 * time.Millisecond, 10 * time.Second

	// Whoever overwrites bundles in a loop gets an answer at once, but no flood: so many writes at once, and so
	// many a second after that.
	writeBurst, writeRate = 30, 1
)

// Options are what a Controller needs.
type Options struct {
	// Config reaches the API server.
	Config *rest.Config
	// Settings name the Secret and the server.
	Settings Settings
	// Mutating and Validating name the webhook configurations to keep; they have to exist.
	Mutating, Validating []string
	// CRDs names definitions to keep if they have a conversion webhook; they may appear later.
	CRDs []string
	// External takes the certificates from a Secret that somebody else maintains, and only checks bundles.
	External bool
	Clock    clock.WithTicker
	// Random is where keys come from, crypto/rand.Reader in production.
	Random io.Reader
	// NewKey makes private keys. Nil means NewRSAKey.
	NewKey func(io.Reader) (crypto.Signer, error)
	Log    logr.Logger
}

// Controller keeps the certificates of one operator. Every replica runs one, leader or not.
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

// New returns a controller that does nothing before Start.
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
			Names: settings.Names(), RenewBefore: settings.RenewBefore, Random: options.Random, NewKey: options.NewKey,
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

// Source returns where the webhook server gets its certificate from.
func (c *Controller) Source() *Source { return &c.source }

// Initialized returns a channel that is closed when the certificates are in place everywhere for the first time.
func (c *Controller) Initialized() <-chan struct{} { return c.initialized }

// Err returns why the last pass failed, nil when all is in place.
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

	notSynced := errors.New("watches are not in sync yet: what is forbidden stands in the log")
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
		c.options.Log.Info("Certificates are not in place, trying again", "reason", err.Error())
		c.queue.AddRateLimited(key)
		return true
	}
	c.queue.Forget(key)
	c.once.Do(func() { close(c.initialized) })
	return true
}

// pass looks at the cache, and only if something is to be done at the server itself: what is judged before a
// write is never older than the request that read it.
func (c *Controller) pass(ctx context.Context) error {
	seen, err := c.observe(ctx, func(_ context.Context, object watched) (client.Object, error) { return object.cached() })
	if err != nil {
		return err
	}
	if c.options.External {
		return c.follow(seen)
	}
	if plan, err := c.plan(seen); err == nil && !plan.Write && seen.carries(plan.Content.Bundle()) {
		return errors.Join(c.serve(plan.Content), seen.missing)
	}

	seen, err = c.observe(ctx, func(ctx context.Context, object watched) (client.Object, error) { return object.live(ctx, c.client) })
	if err != nil {
		return err
	}
	return c.act(ctx, seen)
}

// observation is one look at the cluster.
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
		if object != nil {
			seen.targets = append(seen.targets, object)
		} else if i < len(c.targets)-c.crds {
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

// carries reports whether every target has exactly this bundle.
func (o observation) carries(bundle []byte) bool {
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
		stored := ReadContent(seen.secret.Data)
		snapshot.Stored = &stored
		snapshot.Published = seen.missing == nil && seen.carries(stored.Bundle())
	}
	return c.authority.Plan(snapshot)
}

// act stores, publishes, serves, in this order: a certificate is shown only after its CA is trusted.
func (c *Controller) act(ctx context.Context, seen observation) error {
	plan, err := c.plan(seen)
	if err != nil {
		return fmt.Errorf("plan certificates: %w", err)
	}
	if plan.Write {
		if err := c.store(ctx, seen.secret, plan); err != nil {
			return err
		}
	}
	for _, target := range seen.targets {
		if err := c.publish(ctx, target, plan.Content.Bundle()); err != nil {
			return err
		}
	}
	return errors.Join(c.serve(plan.Content), seen.missing)
}

// store writes the Secret as it was judged. Losing a race against another replica is an error: the retry
// reads what the winner wrote.
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

// publish puts the bundle into one configuration or CRD.
func (c *Controller) publish(ctx context.Context, target client.Object, bundle []byte) error {
	patch, err := injection(target, bundle)
	if err != nil || patch == nil {
		return err
	}
	if !c.limiter.TryAccept() {
		return fmt.Errorf("wait before writing caBundle of %s %s again: somebody overwrites it all the time", kindOf(target), target.GetName())
	}
	c.writes.WithLabelValues(kindOf(target)).Inc()
	c.options.Log.Info("Write caBundle", "kind", kindOf(target), "name", target.GetName())
	if err := c.client.Patch(ctx, target, client.RawPatch(types.JSONPatchType, patch)); err != nil {
		if apierrors.IsInvalid(err) {
			err = fmt.Errorf("somebody else has changed it meanwhile: %w", err) // a test of the patch failed
		}
		return fmt.Errorf("write caBundle of %s %s: %w", kindOf(target), target.GetName(), err)
	}
	return nil
}

// serve switches to the serving certificate of content if it is another one.
func (c *Controller) serve(content Content) error {
	if current := c.source.content(); current != nil && current.equal(content) {
		return nil
	}
	return c.source.serve(content)
}

// follow serves external certificates and checks that everybody trusts them.
func (c *Controller) follow(seen observation) error {
	if seen.secret == nil {
		return fmt.Errorf("not found Secret %s with external certificates", c.secret.key)
	}
	content := ReadExternal(seen.secret.Data)
	failures := []error{c.serve(content), seen.missing}
	for _, target := range seen.targets {
		failures = append(failures, checkExternal(target, content.CA.Certificate))
	}
	return errors.Join(failures...)
}
