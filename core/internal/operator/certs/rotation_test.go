package certs

import (
	"crypto/tls"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// started returns the content of a cluster that was installed at birth.
func started(t *testing.T, authority Authority) Content {
	t.Helper()
	plan, err := authority.Plan(Snapshot{Now: birth()})
	require.NoError(t, err)
	require.True(t, plan.Write)
	return plan.Content
}

func TestPlan(t *testing.T) {
	authority := testAuthority()
	fresh := started(t, authority)
	other := started(t, authority)

	caDue := birth().Add(caLife * 2 / 3)
	prepared := fresh
	var err error
	prepared.Next, err = authority.newCA(caDue)
	require.NoError(t, err)
	prepared.Serving, err = authority.newServing(fresh.CA, caDue)
	require.NoError(t, err)
	switched, err := authority.switchCA(contentState{content: prepared, now: caDue.Add(propagationTime)})
	require.NoError(t, err)

	moved := authority
	moved.Names = []string{"feature-webhook.elsewhere.svc"}
	withoutKey := fresh
	withoutKey.CA.Key = nil
	mixed := fresh
	mixed.CA.Key = other.CA.Key
	garbage := Content{CA: Pair{[]byte("x"), []byte("y")}}

	tests := []struct {
		name      string
		authority *Authority
		snapshot  Snapshot
		reason    string // empty: nothing is written
		check     func(t *testing.T, content Content)
	}{
		{
			name:     "no Secret: a CA and a serving certificate",
			snapshot: Snapshot{Now: birth()},
			reason:   "the Secret is missing",
		},
		{
			name:     "good content is left alone",
			snapshot: Snapshot{Now: birth().Add(day), Stored: &fresh, Published: true},
		},
		{
			name:     "content of another replica is taken as it is",
			snapshot: Snapshot{Now: birth().Add(day), Stored: &other, Remembered: &fresh},
			check:    func(t *testing.T, content Content) { assert.Equal(t, other, content) },
		},
		{
			name:     "a lost Secret comes back with a new CA in preparation",
			snapshot: Snapshot{Now: birth().Add(day), Remembered: &fresh},
			reason:   "the Secret is missing",
			check: func(t *testing.T, content Content) {
				assert.Equal(t, fresh.CA, content.CA)
				assert.Equal(t, fresh.Serving, content.Serving)
				assert.False(t, content.Next.empty())
			},
		},
		{
			name:     "a ruined Secret is restored from memory",
			snapshot: Snapshot{Now: birth().Add(day), Stored: &garbage, Remembered: &fresh},
			reason:   "the content of the Secret is invalid",
			check:    func(t *testing.T, content Content) { assert.Equal(t, fresh.Serving, content.Serving) },
		},
		{
			name:     "a ruined Secret and no memory: everything new",
			snapshot: Snapshot{Now: birth(), Stored: &garbage},
			reason:   "the content of the Secret is invalid",
		},
		{
			name:     "everything has expired: everything new",
			snapshot: Snapshot{Now: birth().Add(11 * 365 * day), Stored: &fresh, Remembered: &fresh},
			reason:   "the content of the Secret is invalid",
			check:    func(t *testing.T, content Content) { assert.NotEqual(t, fresh.CA, content.CA) },
		},
		{
			name:      "another Service name: the CA stays",
			authority: &moved,
			snapshot:  Snapshot{Now: birth(), Stored: &fresh},
			reason:    "the serving certificate is invalid",
			check:     func(t *testing.T, content Content) { assert.Equal(t, fresh.CA, content.CA) },
		},
		{
			name:     "the serving certificate is renewed by the same CA",
			snapshot: Snapshot{Now: birth().Add(servingLife * 2 / 3), Stored: &fresh, Published: true},
			reason:   "the serving certificate is due for renewal",
			check:    func(t *testing.T, content Content) { assert.Equal(t, fresh.Bundle(), content.Bundle()) },
		},
		{
			name:     "an expired serving certificate",
			snapshot: Snapshot{Now: birth().Add(2 * servingLife), Stored: &fresh},
			reason:   "the serving certificate is invalid",
		},
		{
			name:     "the CA's key is gone: a new CA is prepared, the certificate serves on",
			snapshot: Snapshot{Now: birth(), Stored: &withoutKey},
			reason:   "the CA is due for replacement",
			check:    func(t *testing.T, content Content) { assert.Equal(t, fresh.Serving, content.Serving) },
		},
		{
			name:     "the CA's key is another one's",
			snapshot: Snapshot{Now: birth(), Stored: &mixed},
			reason:   "the CA is due for replacement",
		},
		{
			name:     "the next CA waits until it is published",
			snapshot: Snapshot{Now: caDue.Add(day), Stored: &prepared},
		},
		{
			name:     "the next CA waits until API servers have noticed",
			snapshot: Snapshot{Now: caDue.Add(propagationTime - time.Second), Stored: &prepared, Published: true},
		},
		{
			name:     "the next CA signs, the old one stays trusted",
			snapshot: Snapshot{Now: caDue.Add(propagationTime), Stored: &prepared, Published: true},
			reason:   "the next CA is trusted everywhere",
			check: func(t *testing.T, content Content) {
				assert.Equal(t, prepared.Next, content.CA)
				assert.Equal(t, prepared.CA.Certificate, content.Previous)
				assert.True(t, content.Next.empty())
			},
		},
		{
			name:     "the previous CA stays while replicas may lag",
			snapshot: Snapshot{Now: caDue.Add(propagationTime + overlap - time.Second), Stored: &switched, Published: true},
		},
		{
			name:     "the previous CA goes",
			snapshot: Snapshot{Now: caDue.Add(propagationTime + overlap), Stored: &switched, Published: true},
			reason:   "the previous CA is unused",
			check:    func(t *testing.T, content Content) { assert.Empty(t, content.Previous) },
		},
		{
			name:     "a Secret without ca.crt gets it",
			snapshot: Snapshot{Now: birth().Add(day), Stored: &fresh, Incomplete: true, Published: true},
			reason:   "the Secret is incomplete",
			check:    func(t *testing.T, content Content) { assert.Equal(t, fresh, content) },
		},
		{
			name:     "a renewal completes the Secret, too",
			snapshot: Snapshot{Now: birth().Add(servingLife * 2 / 3), Stored: &fresh, Incomplete: true, Published: true},
			reason:   "the serving certificate is due for renewal",
		},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			used := authority
			if test.authority != nil {
				used = *test.authority
			}
			plan, err := used.Plan(test.snapshot)
			require.NoError(t, err)
			assert.Equal(t, test.reason, plan.Reason)
			assert.Equal(t, test.reason != "", plan.Write)
			require.NoError(t, used.canServe(plan.Content, test.snapshot.Now), "what is planned can be served")
			if test.check != nil {
				test.check(t, plan.Content)
			}
		})
	}
}

// replica is one operator of a simulated cluster.
type replica struct {
	seen   *Content // of the Secret
	served *Content
}

// world is a Secret, some places with a bundle, and some replicas.
type world struct {
	authority Authority
	now       time.Time
	secret    *Content
	bundles   [][]byte // what the API server uses
	replicas  []*replica
	writes    map[string]int
}

// pass is what Controller.apply does: store, publish, serve.
func (w *world) pass(t *testing.T, r *replica) {
	t.Helper()
	published := w.secret != nil
	for _, bundle := range w.bundles {
		published = published && string(bundle) == string(w.secret.Bundle())
	}
	plan, err := w.authority.Plan(Snapshot{Now: w.now, Stored: w.secret, Remembered: r.served, Published: published})
	require.NoError(t, err)
	if plan.Write {
		w.writes[plan.Reason]++
		w.secret = &plan.Content
	}
	for i := range w.bundles {
		w.bundles[i] = plan.Content.Bundle()
	}
	r.seen, r.served = &plan.Content, &plan.Content
}

// check is the promise: whatever replica answers, everybody who asks accepts its certificate.
func (w *world) check(t *testing.T) {
	t.Helper()
	for _, r := range w.replicas {
		if r.served == nil {
			continue
		}
		pair, err := tls.X509KeyPair(r.served.Serving.Certificate, r.served.Serving.Key)
		require.NoError(t, err)
		for _, bundle := range w.bundles {
			require.NoError(t, w.authority.verify(pair, bundle, w.now), "at %s", w.now)
		}
	}
}

// TestEveryCallIsTrustedForThirtyYears lets replicas act in random order, late, and after losing the Secret.
// A replica that is skipped serves what it served before, while the others go on.
func TestEveryCallIsTrustedForThirtyYears(t *testing.T) {
	for seed := range uint64(2) {
		random := rand.New(rand.NewPCG(seed, 0))
		w := &world{
			authority: testAuthority(), now: birth(), bundles: make([][]byte, 2),
			replicas: []*replica{{}, {}, {}}, writes: map[string]int{},
		}
		for _, r := range w.replicas {
			w.pass(t, r)
		}
		for w.now.Before(birth().Add(30 * 365 * day)) {
			w.now = w.now.Add(w.pause(random))
			if random.IntN(1000) == 0 {
				w.secret = nil
			}
			w.check(t)
			late := random.IntN(2 * len(w.replicas)) // half of the time nobody
			for _, i := range random.Perm(len(w.replicas)) {
				if i != late {
					w.pass(t, w.replicas[i])
					w.check(t)
				}
			}
		}
		assert.GreaterOrEqual(t, w.writes["the next CA is trusted everywhere"], 4, "CAs were replaced")
		assert.Greater(t, w.writes["the serving certificate is due for renewal"], 30)
		if w.secret != nil {
			assert.Empty(t, w.secret.Previous, "and the old ones dropped")
		}
	}
}

// pause returns short while a rotation goes on and long while nothing happens.
func (w *world) pause(random *rand.Rand) time.Duration {
	if w.secret != nil && w.secret.Next.empty() && len(w.secret.Previous) == 0 {
		return time.Duration(random.Int64N(int64(45 * day)))
	}
	if random.IntN(2) == 0 {
		return time.Duration(random.Int64N(int64(2 * propagationTime)))
	}
	return time.Duration(random.Int64N(int64(overlap / 2)))
}

func TestASteadyWorldIsWrittenOnce(t *testing.T) {
	w := &world{authority: testAuthority(), now: birth(), bundles: make([][]byte, 2), replicas: []*replica{{}, {}}, writes: map[string]int{}}
	for range 200 {
		for _, r := range w.replicas {
			w.pass(t, r)
		}
		w.now = w.now.Add(day)
	}
	assert.Equal(t, map[string]int{"the Secret is missing": 1}, w.writes)
}
