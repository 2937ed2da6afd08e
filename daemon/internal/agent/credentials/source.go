package credentials

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/flotilla-project/flotilla/daemon/api/v1beta1"

	"github.com/flotilla-project/flotilla/daemon/internal/agent/cri"
)

const (
	// secretTTL is how long a secret is remembered: the tags of one job need it at the same time.
	secretTTL = 30 * time.Second
	// maxCachedSecrets bounds the memory.
	maxCachedSecrets = 256
)

// Config holds the settings of a Source.
type Config struct {
	// Reader reads secrets from the server: nothing may be watched or listed.
	Reader client.Reader
	// Namespace is the only namespace with secrets that are read.
	Namespace string
	// Plugins are asked in addition to the secrets; nil for none.
	Plugins *Plugins
	Clock   clock.PassiveClock
	Log     logr.Logger
}

// Source finds credentials.
type Source struct {
	Config
	mu      sync.Mutex
	known   map[string]cachedSecret // by name of the secret
	trouble map[string]string       // the text that was logged last, by name of the secret
}

type cachedSecret struct {
	entries []Entry
	// source is the namespace of the secret that this is a copy of; empty if it is none.
	source string
	until  time.Time
}

// New makes a Source.
func New(config Config) *Source {
	return &Source{
		Config:  config,
		known:   map[string]cachedSecret{},
		trouble: map[string]string{},
	}
}

// For returns the credentials for an image that objects of the namespaces want, the most specific first. An error means
// that the server could not be asked: it has nothing to do with the image.
func (s *Source) For(ctx context.Context, image string, secrets []v1beta1.SecretReference, namespaces []string) ([]cri.Auth, error) {
	var entries []Entry
	for _, ref := range secrets {
		if ref.Namespace != "" && ref.Namespace != s.Namespace {
			s.logOnce(ref.Namespace+"/"+ref.Name, "secrets are read in namespace "+s.Namespace+" only")
			continue
		}
		secret, err := s.read(ctx, ref.Name)
		if err != nil {
			return nil, err
		}
		if secret.source == "" || slices.Contains(namespaces, secret.source) {
			entries = append(entries, secret.entries...)
		}
	}
	if s.Plugins != nil {
		entries = append(entries, s.Plugins.For(ctx, image)...)
	}
	return Match(entries, image), nil
}

// Forget drops the remembered secrets and plugin answers for an image: the next attempt to pull it asks again.
func (s *Source) Forget(image string, secrets []v1beta1.SecretReference) {
	if s.Plugins != nil {
		s.Plugins.Forget(image)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, ref := range secrets {
		delete(s.known, ref.Name)
	}
}

// read returns a secret; one without entries if there is none or the agent may not use it.
func (s *Source) read(ctx context.Context, name string) (cachedSecret, error) {
	now := s.Clock.Now()
	s.mu.Lock()
	known, found := s.known[name]
	s.mu.Unlock()
	if found && now.Before(known.until) {
		return known, nil
	}

	var secret corev1.Secret
	err := s.Reader.Get(ctx, client.ObjectKey{Namespace: s.Namespace, Name: name}, &secret)
	if err != nil && !apierrors.IsNotFound(err) && !apierrors.IsForbidden(err) {
		return cachedSecret{}, fmt.Errorf("read pull secret %s: %w", name, err)
	}
	var entries []Entry
	if err == nil {
		entries, err = Parse(&secret)
	}
	if err != nil {
		s.logOnce(name, err.Error())
		return cachedSecret{}, nil
	}
	s.logOnce(name, "")
	source, _, _ := strings.Cut(secret.Annotations[v1beta1.SecretSourceAnnotation], "/")
	read := cachedSecret{
		entries: entries,
		source:  source,
		until:   now.Add(secretTTL),
	}
	s.remember(name, read, now)
	return read, nil
}

func (s *Source) remember(name string, now cachedSecret, at time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for other, known := range s.known {
		if !at.Before(known.until) {
			delete(s.known, other)
		}
	}
	if len(s.known) < maxCachedSecrets {
		s.known[name] = now
	}
}

// logOnce logs a trouble once, until it is another one.
func (s *Source) logOnce(name, trouble string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.trouble[name] == trouble {
		return
	}
	if len(s.trouble) >= maxCachedSecrets {
		clear(s.trouble)
	}
	s.trouble[name] = trouble
	if trouble != "" {
		s.Log.Info("A pull secret is skipped", "secret", name, "reason", trouble)
	}
}
