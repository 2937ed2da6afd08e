package certs

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/tls"
	"io"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// birth returns when the clusters of these tests start. Certificates carry whole seconds.
func birth() time.Time { return time.Date(2026, time.January, 1, 0, 0, 0, 0, time.UTC) }

// newSmallKey returns a key that is made fast: a timeline needs dozens of keys.
func newSmallKey(random io.Reader) (crypto.Signer, error) {
	return ecdsa.GenerateKey(elliptic.P256(), random)
}

func testAuthority() Authority {
	return Authority{Names: []string{"feature-webhook.flotilla-system.svc", "localhost"}, Random: rand.Reader, NewKey: newSmallKey}
}

func TestCertificatesAreAsSpecified(t *testing.T) {
	authority := testAuthority()
	authority.Names = []string{"10.0.0.1", "localhost"}
	authority.NewKey = NewRSAKey
	ca, err := authority.newCA(birth())
	require.NoError(t, err)
	serving, err := authority.newServing(ca, birth())
	require.NoError(t, err)

	root, err := parse(ca.Certificate)
	require.NoError(t, err)
	assert.Equal(t, "webhook-cert-ca", root.Subject.CommonName)
	assert.True(t, root.IsCA)
	assert.Equal(t, birth().Add(10*365*day), root.NotAfter)

	pair, err := tls.X509KeyPair(serving.Certificate, serving.Key)
	require.NoError(t, err)
	leaf := pair.Leaf
	assert.Equal(t, "10.0.0.1", leaf.Subject.CommonName)
	assert.Equal(t, []string{"localhost"}, leaf.DNSNames)
	require.Len(t, leaf.IPAddresses, 1)
	assert.Equal(t, "10.0.0.1", leaf.IPAddresses[0].String())
	assert.Equal(t, birth().Add(365*day), leaf.NotAfter)
	assert.False(t, leaf.IsCA)
	assert.Equal(t, 2048, leaf.PublicKey.(*rsa.PublicKey).N.BitLen())

	content := Content{CA: ca, Serving: serving}
	require.NoError(t, authority.canServe(content, birth()))
	require.Error(t, authority.canServe(content, birth().Add(366*day)), "expired")
	other := authority
	other.Names = []string{"elsewhere.svc"}
	assert.Error(t, other.canServe(content, birth()), "another name")
}

func TestServingCertificateDoesNotOutliveItsCA(t *testing.T) {
	authority := testAuthority()
	ca, err := authority.newCA(birth())
	require.NoError(t, err)
	late := birth().Add(caLife - 30*day)
	serving, err := authority.newServing(ca, late)
	require.NoError(t, err)
	leaf, err := parse(serving.Certificate)
	require.NoError(t, err)
	assert.Equal(t, birth().Add(caLife), leaf.NotAfter)
}

func TestRenewalIsAfterTwoThirdsOfTheLifeAndNeverBeforeHalf(t *testing.T) {
	authority := testAuthority()
	ca, err := authority.newCA(birth())
	require.NoError(t, err)
	serving, err := authority.newServing(ca, birth())
	require.NoError(t, err)
	leaf, err := parse(serving.Certificate)
	require.NoError(t, err)

	near := func(want, got time.Time) { assert.WithinDuration(t, want, got, time.Hour) }
	near(birth().Add(servingLife*2/3), renewal(leaf, 0))
	near(birth().Add(servingLife-90*day), renewal(leaf, 90*day))
	near(birth().Add(servingLife/2), renewal(leaf, 300*day))
}

func TestContentSurvivesTheSecret(t *testing.T) {
	content := Content{
		CA: Pair{[]byte("ca"), []byte("ca key")}, Next: Pair{[]byte("next"), []byte("next key")},
		Previous: []byte("previous"), Serving: Pair{[]byte("serving"), []byte("serving key")},
	}
	data := content.Data(map[string][]byte{"note": []byte("of somebody else")})
	assert.Equal(t, content, readContent(data))
	assert.Equal(t, "of somebody else", string(data["note"]))
	assert.Equal(t, data["cert.pem"], data["tls.crt"])
	assert.Equal(t, data["key.pem"], data["tls.key"])
	assert.Equal(t, "ca\nnext\nprevious\n", string(content.Bundle()))
	assert.Equal(t, content.Bundle(), data["ca.crt"])
	assert.True(t, content.completes(data))
	delete(data, "ca.crt")
	assert.False(t, content.completes(data))

	content.Next, content.Previous = Pair{}, nil
	data = content.Data(data)
	assert.NotContains(t, data, "next-ca-cert.pem")
	assert.NotContains(t, data, "next-ca-key.pem")
	assert.NotContains(t, data, "previous-ca-cert.pem")
}
