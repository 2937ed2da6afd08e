package certs

import (
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"fmt"
	"net"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/flotilla-project/flotilla/core/testing/await"
)

func settled(content Content) bool { return content.Next.empty() && len(content.Previous) == 0 }

func TestReplicasThatRaceEndWithOneCertificate(t *testing.T) {
	p := newPlace(t)
	controllers := p.start(p.options(p.operatorConfig()), 4)
	p.initialized(controllers)
	content := p.eventuallyTrusted("one CA", settled)

	want, err := tls.X509KeyPair(content.Serving.Certificate, content.Serving.Key)
	require.NoError(t, err)
	for _, c := range controllers {
		served, err := c.Source().GetCertificate(nil)
		require.NoError(t, err)
		assert.Equal(t, want.Certificate, served.Certificate)
	}

	for _, c := range controllers {
		collectors := c.Collectors()
		assert.InDelta(t, p.clock.Now().Add(servingLife).Unix(), testutil.ToFloat64(collectors[1]), 60)
		assert.InDelta(t, p.clock.Now().Add(caLife).Unix(), testutil.ToFloat64(collectors[2]), 60)
	}

	before := p.writes.Load()
	for range 5 {
		p.clock.Step(resync)
		require.Never(t, func() bool { return p.writes.Load() != before }, 100*time.Millisecond, moment, "nothing differs, nothing is written")
	}
}

func TestABundleThatIsOverwrittenComesBack(t *testing.T) {
	p := newPlace(t)
	p.initialized(p.start(p.options(p.operatorConfig()), 2))
	content := p.eventuallyTrusted("one CA", settled)

	overwrite := func(object client.Object, path string) {
		patch := fmt.Sprintf(`[{"op":"add","path":%q,"value":"Zm9yZWlnbg=="}]`, path)
		require.NoError(t, p.admin.Patch(t.Context(), object, client.RawPatch(types.JSONPatchType, []byte(patch))))
	}
	overwrite(p.mutating(), "/webhooks/1/clientConfig/caBundle")
	overwrite(p.validating(), "/webhooks/0/clientConfig/caBundle")
	remove := client.RawPatch(types.JSONPatchType, []byte(`[{"op":"remove","path":"/spec/conversion/webhook/clientConfig/caBundle"}]`))
	require.NoError(t, p.admin.Patch(t.Context(), p.crd(), remove))
	assert.Equal(t, content, p.eventuallyTrusted("the same CA", settled))

	// Manifests that are applied again come without bundles and may change the order of the webhooks.
	applied := p.mutating()
	require.NoError(t, p.admin.Get(t.Context(), client.ObjectKeyFromObject(applied), applied))
	applied.Webhooks = []admissionregistrationv1.MutatingWebhook{applied.Webhooks[1], applied.Webhooks[0]}
	applied.Webhooks[0].ClientConfig.CABundle, applied.Webhooks[1].ClientConfig.CABundle = nil, nil
	require.NoError(t, p.admin.Update(t.Context(), applied))
	assert.Equal(t, content, p.eventuallyTrusted("the same CA", settled))
	require.NoError(t, p.admin.Get(t.Context(), client.ObjectKeyFromObject(applied), applied))
	assert.Equal(t, p.webhookNames()[1], applied.Webhooks[0].Name, "nothing but the bundle is ours")
}

// Before a kind changes hands its CRD is converted by another operator, whose clients trust another CA.
func TestACRDThatAnotherServiceConvertsIsLeftAlone(t *testing.T) {
	p := newPlace(t)
	convert := func(service, bundle string) {
		patch := fmt.Sprintf(`{"spec":{"conversion":{"webhook":{"clientConfig":{"caBundle":%s,"service":{"name":%q}}}}}}`, bundle, service)
		require.NoError(t, p.admin.Patch(t.Context(), p.crd(), client.RawPatch(types.MergePatchType, []byte(patch))))
	}
	theirs := base64.StdEncoding.EncodeToString(started(t, Authority{Names: []string{"other"}, Random: rand.Reader, NewKey: newSmallKey}).CA.Certificate)
	convert("other", `"`+theirs+`"`)

	p.initialized(p.start(p.options(p.operatorConfig()), 1))

	crd := p.crd()
	require.NoError(t, p.admin.Get(t.Context(), client.ObjectKeyFromObject(crd), crd))
	assert.Equal(t, theirs, base64.StdEncoding.EncodeToString(crd.Spec.Conversion.Webhook.ClientConfig.CABundle))
	convert("webhook", "null")
	p.eventuallyTrusted("one CA", settled)
}

// OpenKruise's Secret, and that of an operator before this version, has no ca.crt.
func TestASecretWithoutABundleGetsIt(t *testing.T) {
	p := newPlace(t)
	p.initialized(p.start(p.options(p.operatorConfig()), 2))
	content := p.eventuallyTrusted("one CA", settled)
	key := client.ObjectKey{Namespace: p.name, Name: "certs"}
	var secret corev1.Secret
	require.NoError(t, p.admin.Get(t.Context(), key, &secret))
	require.Equal(t, string(content.Bundle()), string(secret.Data["ca.crt"]))

	for _, wrong := range [][]byte{nil, []byte("stale")} {
		secret.Data["ca.crt"] = wrong
		if wrong == nil {
			delete(secret.Data, "ca.crt")
		}
		require.NoError(t, p.admin.Update(t.Context(), &secret))
		await.Until(t, func(c *assert.CollectT) {
			require.NoError(c, p.admin.Get(t.Context(), key, &secret))
			assert.Equal(c, string(content.Bundle()), string(secret.Data["ca.crt"]))
		})
	}
	assert.Equal(t, content, readContent(secret.Data), "the certificates stay")
}

func TestForeignWritersOfOtherFieldsGetNoAnswer(t *testing.T) {
	p := newPlace(t)
	p.initialized(p.start(p.options(p.operatorConfig()), 2))
	p.eventuallyTrusted("one CA", settled)

	before := p.writes.Load()
	last := ""
	for i := range 100 {
		patch := fmt.Sprintf(`[{"op":"add","path":"/webhooks/0/namespaceSelector","value":{"matchLabels":{"turn":"%d"}}}]`, i)
		object := p.mutating()
		require.NoError(t, p.admin.Patch(t.Context(), object, client.RawPatch(types.JSONPatchType, []byte(patch))))
		last = object.ResourceVersion
	}
	require.Never(t, func() bool { return p.writes.Load() != before }, 300*time.Millisecond, moment)
	object := p.mutating()
	require.NoError(t, p.admin.Get(t.Context(), client.ObjectKeyFromObject(object), object))
	assert.Equal(t, last, object.ResourceVersion)
}

func TestAFightOverABundleIsSlow(t *testing.T) {
	p := newPlace(t)
	p.initialized(p.start(p.options(p.operatorConfig()), 1))
	content := p.eventuallyTrusted("one CA", settled)

	for range 4 * writeBurst { // a foreign writer that is as fast as it can
		patch := []byte(`[{"op":"add","path":"/webhooks/0/clientConfig/caBundle","value":"Zm9yZWlnbg=="}]`)
		require.NoError(t, p.admin.Patch(t.Context(), p.mutating(), client.RawPatch(types.JSONPatchType, patch)))
		object := p.mutating()
		require.NoError(t, p.admin.Get(t.Context(), client.ObjectKeyFromObject(object), object))
	}
	require.Never(t, func() bool { return p.writes.Load() > writeBurst+1 }, 300*time.Millisecond, moment, "the clock stands still")

	p.clock.Step(resync)
	assert.Equal(t, content, p.eventuallyTrusted("the same CA", settled))
}

func TestAMissingConfigurationIsNamedAndWaitedFor(t *testing.T) {
	p := newPlace(t)
	require.NoError(t, p.admin.Delete(t.Context(), p.mutating()))
	controllers := p.start(p.options(p.operatorConfig()), 1)
	await.Until(t, func(check *assert.CollectT) {
		err := controllers[0].Err()
		assert.ErrorContains(check, err, "not found MutatingWebhookConfiguration "+p.name)
	})
	select {
	case <-controllers[0].Initialized():
		assert.Fail(t, "initialized too early")
	default:
	}

	p.create(p.mutating())
	p.initialized(controllers)
	p.eventuallyTrusted("one CA", settled)
}

// TestRotationInterruptsNobody deletes the Secret, which starts a rotation, and lets time pass until the old CA
// is gone. All the while clients that trust what the configurations say call both replicas.
func TestRotationInterruptsNobody(t *testing.T) {
	p := newPlace(t)
	controllers := p.start(p.options(p.operatorConfig()), 2)
	p.initialized(controllers)
	first := p.eventuallyTrusted("one CA", settled)
	calls := p.callAllTheTime(controllers)
	calls.more(t)

	require.NoError(t, p.admin.Delete(t.Context(), &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: p.name, Name: "certs"}}))
	prepared := p.eventuallyTrusted("the old CA and the next", func(content Content) bool { return !content.Next.empty() })
	assert.Equal(t, first.Serving, prepared.Serving)
	calls.more(t)

	p.clock.Step(propagationTime + time.Minute)
	switched := p.eventuallyTrusted("the new CA and the previous", func(content Content) bool { return len(content.Previous) > 0 })
	assert.Equal(t, prepared.Next, switched.CA)
	p.eventuallyServed(controllers, switched)
	calls.more(t)

	p.clock.Step(overlap + time.Minute)
	last := p.eventuallyTrusted("the new CA alone", settled)
	assert.Equal(t, switched.CA, last.CA)
	assert.NotContains(t, string(last.Bundle()), strings.TrimSpace(string(first.CA.Certificate)))
	calls.more(t)

	p.clock.Step(servingLife * 2 / 3)
	renewed := p.eventuallyTrusted("a new serving certificate", func(content Content) bool {
		return string(content.Serving.Certificate) != string(last.Serving.Certificate)
	})
	assert.Equal(t, last.CA, renewed.CA)
	p.eventuallyServed(controllers, renewed)
	calls.more(t)

	assert.Empty(t, calls.stop())
	t.Logf("%d calls, each with a handshake for every bundle", calls.made.Load())
}

func (p *place) eventuallyServed(controllers []*Controller, content Content) {
	p.t.Helper()
	for _, c := range controllers {
		await.Until(p.t, func(check *assert.CollectT) { assert.True(check, c.Source().content().equal(content)) })
	}
}

// calls are clients that make TLS handshakes all the time.
type calls struct {
	made   atomic.Int64
	failed []string
	mutex  sync.Mutex
	all    sync.WaitGroup
	done   chan struct{}
}

// callAllTheTime starts two clients for every replica.
func (p *place) callAllTheTime(controllers []*Controller) *calls {
	p.t.Helper()
	out := &calls{done: make(chan struct{})}
	for _, c := range slices.Concat(controllers, controllers) {
		listener, err := tls.Listen("tcp", "localhost:0", &tls.Config{GetCertificate: c.Source().GetCertificate, MinVersion: tls.VersionTLS12})
		require.NoError(p.t, err)
		p.t.Cleanup(func() { _ = listener.Close() })
		go answer(listener)
		out.all.Go(func() { out.loop(p, listener.Addr().String()) })
	}
	return out
}

func (c *calls) loop(p *place, address string) {
	for {
		select {
		case <-c.done:
			return
		default:
		}
		if err := p.call(address); err != nil {
			c.mutex.Lock()
			c.failed = append(c.failed, err.Error())
			c.mutex.Unlock()
		}
		c.made.Add(1)
	}
}

// more waits until another 40 calls are through.
func (c *calls) more(t *testing.T) {
	t.Helper()
	enough := c.made.Load() + 40
	await.Until(t, func(check *assert.CollectT) { assert.GreaterOrEqual(check, c.made.Load(), enough) })
}

// stop ends the calls and returns what went wrong.
func (c *calls) stop() []string {
	close(c.done)
	c.all.Wait()
	return c.failed
}

func answer(listener net.Listener) {
	for {
		connection, err := listener.Accept()
		if err != nil {
			return
		}
		go func() {
			defer connection.Close()
			_ = connection.(*tls.Conn).Handshake()
		}()
	}
}

// call trusts what each of the configurations says at this moment, one handshake for each bundle.
func (p *place) call(address string) error {
	bundles, err := p.bundles(p.t.Context())
	if err != nil {
		return err
	}
	for _, bundle := range bundles {
		roots := x509.NewCertPool()
		roots.AppendCertsFromPEM([]byte(bundle))
		dialer := &tls.Dialer{Config: &tls.Config{
			RootCAs: roots, ServerName: "webhook." + p.name + ".svc", MinVersion: tls.VersionTLS12, Time: p.clock.Now,
		}}
		connection, err := dialer.DialContext(p.t.Context(), "tcp", address)
		if err != nil {
			return err
		}
		_ = connection.Close()
	}
	return nil
}

func TestExternalCertificatesAreOnlyChecked(t *testing.T) {
	p := newPlace(t)
	ours := started(t, Authority{Names: []string{"webhook." + p.name + ".svc"}, Random: p.options(nil).Random, NewKey: newSmallKey})
	p.create(&corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: p.name, Name: "certs"},
		Data:       map[string][]byte{"ca.crt": ours.CA.Certificate, "tls.crt": ours.Serving.Certificate, "tls.key": ours.Serving.Key},
	})
	options := p.options(p.operatorConfig())
	options.External = true
	controllers := p.start(options, 1)

	want := []string{
		"caBundle of MutatingWebhookConfiguration " + p.name + " does not match the external caBundle",
		"caBundle of ValidatingWebhookConfiguration " + p.name + " does not match the external caBundle",
		"caBundle of CRD " + p.crd().Name + " does not match external caBundle",
	}
	await.Until(t, func(check *assert.CollectT) {
		err := controllers[0].Err()
		assert.EqualError(check, err, strings.Join(want, "\n"))
	}, "%v", controllers[0].Err())

	p.inject(ours.CA.Certificate, p.mutating(), p.validating(), p.crd())
	p.initialized(controllers)
	assert.Zero(t, p.writes.Load())
	served, err := controllers[0].Source().GetCertificate(nil)
	require.NoError(t, err)
	assert.Equal(t, "webhook."+p.name+".svc", served.Leaf.Subject.CommonName)
}

// inject writes a bundle into targets, as whoever maintains external certificates does.
func (p *place) inject(bundle []byte, targets ...client.Object) {
	p.t.Helper()
	for _, object := range targets {
		require.NoError(p.t, p.admin.Get(p.t.Context(), client.ObjectKeyFromObject(object), object))
		patch, err := injection(object, bundle)
		require.NoError(p.t, err)
		require.NoError(p.t, p.admin.Patch(p.t.Context(), object, client.RawPatch(types.JSONPatchType, patch)))
	}
}

// Renewals of external certificates refuse nobody: those of a CA that stays are used at once, and one of a new CA when all trust
// it, or when the one before is over.
func TestExternalRenewalsInterruptNobody(t *testing.T) {
	p := newPlace(t)
	authority := Authority{Names: []string{"webhook." + p.name + ".svc"}, Random: rand.Reader, NewKey: newSmallKey}
	current := started(t, authority)
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: p.name, Name: "certs"}}
	write := func(content Content) {
		secret.Data = map[string][]byte{"ca.crt": content.CA.Certificate, "tls.crt": content.Serving.Certificate, "tls.key": content.Serving.Key}
		require.NoError(t, p.admin.Update(t.Context(), secret))
	}
	serves := func(controllers []*Controller, content Content) {
		await.Until(t, func(check *assert.CollectT) {
			assert.Equal(check, string(content.Serving.Certificate), string(controllers[0].Source().content().Serving.Certificate))
		})
	}
	p.create(secret)
	write(current)
	p.inject(current.CA.Certificate, p.mutating(), p.validating(), p.crd())
	options := p.options(p.operatorConfig())
	options.External = true
	controllers := p.start(options, 1)
	p.initialized(controllers)
	calls := p.callAllTheTime(controllers)
	for range 3 {
		renewed := current
		var err error
		renewed.Serving, err = authority.newServing(current.CA, birth())
		require.NoError(t, err)
		write(renewed)
		serves(controllers, renewed)
		calls.more(t)
		current = renewed
	}

	other := started(t, authority)
	write(other)
	await.Until(t, func(check *assert.CollectT) { assert.Error(check, controllers[0].Err()) })
	calls.more(t)
	assert.Empty(t, calls.stop())
	p.inject(other.CA.Certificate, p.mutating(), p.validating())
	await.Until(t, func(check *assert.CollectT) {
		assert.EqualError(check, controllers[0].Err(), "caBundle of CRD "+p.crd().Name+" does not match external caBundle")
	})
	serves(controllers, current)
	p.inject(other.CA.Certificate, p.crd())
	serves(controllers, other)

	last := started(t, authority)
	write(last)
	await.Until(t, func(check *assert.CollectT) { assert.Error(check, controllers[0].Err()) })
	serves(controllers, other)
	p.clock.Step(2 * servingLife)
	serves(controllers, last)
	assert.Zero(t, p.writes.Load())
}
