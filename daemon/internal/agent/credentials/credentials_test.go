package credentials_test

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/flotilla-project/flotilla/daemon/api/v1beta1"

	"github.com/flotilla-project/flotilla/daemon/internal/agent/credentials"
	"github.com/flotilla-project/flotilla/daemon/internal/agent/cri"
)

func TestCredentialsMatchAsInTheKubelet(t *testing.T) {
	cases := []struct {
		name   string
		places []string // each has its place as user name
		image  string
		want   []string
	}{
		{"the registry", []string{"reg.io", "other.io"}, "reg.io/a/b:1", []string{"reg.io"}},
		{"with a scheme", []string{"https://reg.io"}, "reg.io/a:1", []string{"https://reg.io"}},
		{"with a version of the API", []string{"https://reg.io/v2/"}, "reg.io/a:1", []string{"https://reg.io/v2/"}},
		{"a path after a version of the API", []string{"https://reg.io/v2/team", "reg.io/v1/team"}, "reg.io/team/a:1", []string{"https://reg.io/v2/team", "reg.io/v1/team"}},
		{"a repository with the name of a version", []string{"reg.io/team", "reg.io"}, "reg.io/v2/team/a:1", []string{"reg.io"}},
		{"a path that ends with a slash", []string{"reg.io/team/", "reg.io/team"}, "reg.io/team/a:1", []string{"reg.io/team/", "reg.io/team"}},
		{"a longer name than a path that ends with a slash", []string{"reg.io/team/", "reg.io/team"}, "reg.io/team-b/a:1", []string{"reg.io/team"}},
		{"the longest path first", []string{"reg.io", "reg.io/a/b", "reg.io/a"}, "reg.io/a/b/c:1", []string{"reg.io/a/b", "reg.io/a", "reg.io"}},
		{"another path", []string{"reg.io/b"}, "reg.io/a:1", nil},
		{"the port counts", []string{"reg.io:5000", "reg.io"}, "reg.io:5000/a:1", []string{"reg.io:5000"}},
		{"globs in parts of the host", []string{"*.reg.io", "a*.reg.io", "a.*.io"}, "ab.reg.io/x:1", []string{"*.reg.io", "a*.reg.io"}},
		{"a glob is one part", []string{"*.io"}, "a.reg.io/x:1", nil},
		{"the name before the glob", []string{"*.io", "reg.io"}, "reg.io/x:1", []string{"reg.io", "*.io"}},
		{"the path before the name", []string{"reg.io", "*.io/x"}, "reg.io/x:1", []string{"*.io/x", "reg.io"}},
		{
			"all forms of docker.io", []string{"https://index.docker.io/v1/", "docker.io", "registry-1.docker.io", "quay.io"},
			"docker.io/library/nginx:1", []string{"https://index.docker.io/v1/", "docker.io", "registry-1.docker.io"},
		},
		{"a path in docker.io", []string{"docker.io/mine", "index.docker.io"}, "docker.io/library/nginx:1", []string{"index.docker.io"}},
		{"by digest", []string{"reg.io/a"}, "reg.io/a@sha256:12", []string{"reg.io/a"}},
		{"a glob that is none", []string{"[.io"}, "reg.io/a:1", nil},
		{"the same twice", []string{"reg.io", "reg.io"}, "reg.io/a:1", []string{"reg.io"}},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			var entries []credentials.Entry
			for _, place := range c.places {
				entries = append(entries, credentials.Entry{Location: place, Auth: cri.Auth{Username: place}})
			}
			var got []string
			for _, auth := range credentials.Match(entries, c.image) {
				got = append(got, auth.Username)
			}
			assert.Equal(t, c.want, got)
		})
	}
}

func secret(kind corev1.SecretType, key, value string) *corev1.Secret {
	return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "config", Name: "pull"}, Type: kind, Data: map[string][]byte{key: []byte(value)}}
}

func dockerConfig(auths string) *corev1.Secret {
	return secret(corev1.SecretTypeDockerConfigJson, corev1.DockerConfigJsonKey, `{"auths":`+auths+`}`)
}

func TestSecretsAreRead(t *testing.T) {
	basic := base64.StdEncoding.EncodeToString([]byte("me:se:cret"))
	cases := []struct {
		name   string
		secret *corev1.Secret
		want   []credentials.Entry
	}{
		{"user and password", dockerConfig(`{"reg.io":{"username":"me","password":"p"}}`), []credentials.Entry{{Location: "reg.io", Auth: cri.Auth{Username: "me", Password: "p"}}}},
		{"auth wins", dockerConfig(`{"reg.io":{"username":"you","auth":"` + basic + `"}}`), []credentials.Entry{{Location: "reg.io", Auth: cri.Auth{Username: "me", Password: "se:cret"}}}},
		{"without padding", dockerConfig(`{"reg.io":{"auth":"` + strings.TrimRight(basic, "=") + `"}}`), []credentials.Entry{{Location: "reg.io", Auth: cri.Auth{Username: "me", Password: "se:cret"}}}},
		{"tokens", dockerConfig(`{"reg.io":{"identitytoken":"i","registrytoken":"r"}}`), []credentials.Entry{{Location: "reg.io", Auth: cri.Auth{IdentityToken: "i", RegistryToken: "r"}}}},
		{"an entry that says nothing", dockerConfig(`{"reg.io":{}}`), nil},
		{"no entries", dockerConfig(`null`), nil},
		{"the old form", secret(corev1.SecretTypeDockercfg, corev1.DockerConfigKey, `{"reg.io":{"username":"me","password":"p"}}`), []credentials.Entry{{Location: "reg.io", Auth: cri.Auth{Username: "me", Password: "p"}}}},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			got, err := credentials.Parse(c.secret)
			require.NoError(t, err)
			assert.Equal(t, c.want, got)
		})
	}
}

func TestUnreadableSecretsAreNotQuoted(t *testing.T) {
	for name, s := range map[string]*corev1.Secret{
		"must be the JSON":                secret(corev1.SecretTypeDockerConfigJson, corev1.DockerConfigJsonKey, `hunter2`),
		".dockercfg must be the JSON":     secret(corev1.SecretTypeDockercfg, corev1.DockerConfigKey, `hunter2`),
		`registry reg.io: auth must be b`: dockerConfig(`{"reg.io":{"auth":"hunter2!"}}`),
		`reg.io: auth must have a colon`:  dockerConfig(`{"reg.io":{"auth":"` + base64.StdEncoding.EncodeToString([]byte("hunter2")) + `"}}`),
		`type "Opaque" has no`:            secret(corev1.SecretTypeOpaque, "a", "hunter2"),
	} {
		_, err := credentials.Parse(s)
		require.ErrorContains(t, err, name)
		assert.NotContains(t, err.Error(), "hunter2")
	}
}

// secrets is what a server has, and counts how often it is asked.
type secrets struct {
	client.Reader
	all  map[client.ObjectKey]*corev1.Secret
	gets int
	away error
}

func (s *secrets) Get(_ context.Context, key client.ObjectKey, object client.Object, _ ...client.GetOption) error {
	s.gets++
	if s.away != nil {
		return s.away
	}
	found, ok := s.all[key]
	if !ok {
		return apierrors.NewNotFound(corev1.Resource("secrets"), key.Name)
	}
	found.DeepCopyInto(object.(*corev1.Secret))
	return nil
}

func TestSecretsAreReadAgainAfterHalfAMinute(t *testing.T) {
	key := client.ObjectKey{Namespace: "config", Name: "pull"}
	server := &secrets{all: map[client.ObjectKey]*corev1.Secret{key: dockerConfig(`{"reg.io":{"username":"a","password":"p"}}`)}}
	clock := clocktesting.NewFakeClock(time.Unix(1000, 0))
	source := credentials.New(credentials.Config{Reader: server, Namespace: "config", Clock: clock, Log: logr.Discard()})
	refs := []v1beta1.SecretReference{{Namespace: "config", Name: "pull"}}

	ask := func() string {
		got, err := source.For(t.Context(), "reg.io/a:1", refs, nil)
		require.NoError(t, err)
		require.Len(t, got, 1)
		return got[0].Username
	}
	assert.Equal(t, "a", ask())
	server.all[key] = dockerConfig(`{"reg.io":{"username":"b","password":"p"}}`)
	clock.Step(29 * time.Second)
	assert.Equal(t, "a", ask())
	assert.Equal(t, 1, server.gets)
	clock.Step(time.Second)
	assert.Equal(t, "b", ask())
}

func TestSecretsOfOtherNamespacesAreNeverRead(t *testing.T) {
	server := &secrets{all: map[client.ObjectKey]*corev1.Secret{}}
	var lines []string
	log := funcr.New(func(_, line string) { lines = append(lines, line) }, funcr.Options{})
	source := credentials.New(credentials.Config{Reader: server, Namespace: "config", Clock: clocktesting.NewFakeClock(time.Unix(0, 0)), Log: log})
	for range 3 {
		got, err := source.For(t.Context(), "reg.io/a:1", []v1beta1.SecretReference{{Namespace: "kube-system", Name: "token"}}, nil)
		require.NoError(t, err)
		assert.Empty(t, got)
	}
	assert.Zero(t, server.gets)
	require.Len(t, lines, 1, "said once")
	assert.Contains(t, lines[0], "secrets are read in namespace config only")

	for range 3 {
		got, err := source.For(t.Context(), "reg.io/a:1", []v1beta1.SecretReference{{Name: "gone"}}, nil)
		require.NoError(t, err)
		assert.Empty(t, got)
	}
	assert.Equal(t, 3, server.gets, "a missing secret is asked for each time")
	assert.Len(t, lines, 2)
}

// A copy of a secret serves what its own namespace wants. One that an administrator has put there serves everybody.
func TestACopyServesItsNamespace(t *testing.T) {
	copied := dockerConfig(`{"reg.io":{"username":"team-a","password":"p"}}`)
	copied.Annotations = map[string]string{v1beta1.SecretSourceAnnotation: "team-a/registry"}
	server := &secrets{all: map[client.ObjectKey]*corev1.Secret{
		{Namespace: "config", Name: "copy"}: copied, {Namespace: "config", Name: "all"}: dockerConfig(`{"reg.io":{"username":"all","password":"p"}}`),
	}}
	source := credentials.New(credentials.Config{Reader: server, Namespace: "config", Clock: clocktesting.NewFakeClock(time.Unix(0, 0)), Log: logr.Discard()})
	for namespaces, want := range map[string][]string{"team-b": {"all"}, "": {"all"}, "team-a": {"team-a", "all"}, "team-b team-a": {"team-a", "all"}} {
		got, err := source.For(t.Context(), "reg.io/a:1", []v1beta1.SecretReference{{Name: "copy"}, {Name: "all"}}, strings.Fields(namespaces))
		require.NoError(t, err)
		var names []string
		for _, auth := range got {
			names = append(names, auth.Username)
		}
		assert.Equal(t, want, names, namespaces)
	}
}

// While the server is away nobody knows whether there is a secret: an anonymous pull would fail for that.
func TestAServerThatIsAwayIsAnError(t *testing.T) {
	source := credentials.New(credentials.Config{
		Reader: &secrets{away: errors.New("connection refused")}, Namespace: "config", Clock: clocktesting.NewFakeClock(time.Unix(0, 0)), Log: logr.Discard(),
	})
	_, err := source.For(t.Context(), "reg.io/a:1", []v1beta1.SecretReference{{Name: "pull"}}, nil)
	require.ErrorContains(t, err, "read pull secret pull: connection refused")
}

// A plugin that leaves a child behind is waited for no longer than its time.
func TestAPluginThatLeavesAChild(t *testing.T) {
	folder := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(folder, "slow"), []byte("#!/bin/sh\nsleep 600\n"), 0o700))
	file := filepath.Join(folder, "config.yaml")
	require.NoError(t, os.WriteFile(file, []byte(`apiVersion: kubelet.config.k8s.io/v1
kind: CredentialProviderConfig
providers:
- name: slow
  apiVersion: credentialprovider.kubelet.k8s.io/v1
  matchImages: ["*.reg.io"]
  defaultCacheDuration: 1m
`), 0o600))
	plugins, err := credentials.LoadPlugins(credentials.PluginConfig{File: file, Folder: folder, Environ: os.Environ(), Clock: clocktesting.NewFakeClock(time.Unix(0, 0)), Log: logr.Discard()})
	require.NoError(t, err)
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	assert.Empty(t, plugins.For(ctx, "a.reg.io/x:1"))
}

// givenPlugin writes a plugin that counts its runs in a file, and its configuration.
func givenPlugin(t *testing.T, answer string) (*credentials.Plugins, *clocktesting.FakeClock, func() int) {
	t.Helper()
	folder := t.TempDir()
	runs := filepath.Join(folder, "runs")
	script := fmt.Sprintf("#!/bin/sh\ncat >>%s\necho >>%s\nprintf '%%s' '%s'\n", runs, runs, answer)
	require.NoError(t, os.WriteFile(filepath.Join(folder, "ask"), []byte(script), 0o700))
	file := filepath.Join(folder, "config.yaml")
	require.NoError(t, os.WriteFile(file, []byte(`
apiVersion: kubelet.config.k8s.io/v1
kind: CredentialProviderConfig
providers:
- name: ask
  apiVersion: credentialprovider.kubelet.k8s.io/v1
  matchImages: ["*.reg.io"]
  defaultCacheDuration: 10m
`), 0o600))
	clock := clocktesting.NewFakeClock(time.Unix(0, 0))
	plugins, err := credentials.LoadPlugins(credentials.PluginConfig{
		File: file, Folder: folder, Environ: os.Environ(), Clock: clock, Log: logr.Discard(),
	})
	require.NoError(t, err)
	return plugins, clock, func() int {
		text, err := os.ReadFile(runs)
		if err != nil {
			return 0
		}
		for line := range strings.Lines(string(text)) {
			assert.Contains(t, line, `"kind":"CredentialProviderRequest"`)
			assert.Contains(t, line, `"image":"a.reg.io/`)
		}
		return strings.Count(string(text), "\n")
	}
}

const response = `{"kind":"CredentialProviderResponse","apiVersion":"credentialprovider.kubelet.k8s.io/v1",
	"cacheKeyType":"%s","auth":{"*.reg.io":{"username":"u","password":"p"}}}`

func TestPluginsAreAskedForTheirImages(t *testing.T) {
	plugins, clock, runs := givenPlugin(t, fmt.Sprintf(response, "Registry"))
	assert.Empty(t, plugins.For(t.Context(), "other.io/a:1"))
	assert.Zero(t, runs())
	got := plugins.For(t.Context(), "a.reg.io/x:1")
	assert.Equal(t, []credentials.Entry{{Location: "*.reg.io", Auth: cri.Auth{Username: "u", Password: "p"}}}, got)
	assert.Equal(t, got, plugins.For(t.Context(), "a.reg.io/y:1"), "the answer is for the registry")
	assert.Equal(t, 1, runs())
	clock.Step(10 * time.Minute)
	assert.Equal(t, got, plugins.For(t.Context(), "a.reg.io/y:1"))
	assert.Equal(t, 2, runs())
}

func TestAPluginMayAnswerForOneImage(t *testing.T) {
	plugins, _, runs := givenPlugin(t, fmt.Sprintf(response, "Image"))
	for _, image := range []string{"a.reg.io/x:1", "a.reg.io/x:2", "a.reg.io/y:1"} {
		require.Len(t, plugins.For(t.Context(), image), 1)
	}
	assert.Equal(t, 2, runs())
}

func TestForgottenAnswersAreAskedForAnew(t *testing.T) {
	for _, kind := range []string{"Image", "Registry", "Global"} {
		t.Run(kind, func(t *testing.T) {
			plugins, _, runs := givenPlugin(t, fmt.Sprintf(response, kind))
			require.Len(t, plugins.For(t.Context(), "a.reg.io/x:1"), 1)
			plugins.Forget("other.io/x:1")
			require.Len(t, plugins.For(t.Context(), "a.reg.io/x:1"), 1)
			assert.Equal(t, 1, runs(), "the plugin is not for that image")
			plugins.Forget("a.reg.io/x:2")
			require.Len(t, plugins.For(t.Context(), "a.reg.io/x:1"), 1)
			assert.Equal(t, 2, runs())
		})
	}
}

func TestAPluginThatFailsCountsAsAbsent(t *testing.T) {
	for _, answer := range []string{"", "{}", fmt.Sprintf(response, "Moon")} {
		plugins, _, _ := givenPlugin(t, answer)
		assert.Empty(t, plugins.For(t.Context(), "a.reg.io/x:1"))
	}
}

func TestPluginConfigurationIsChecked(t *testing.T) {
	folder := t.TempDir()
	none, err := credentials.LoadPlugins(credentials.PluginConfig{File: filepath.Join(folder, "none")})
	require.NoError(t, err)
	assert.Nil(t, none)

	good := "{name: ask, apiVersion: credentialprovider.kubelet.k8s.io/v1, matchImages: [a], defaultCacheDuration: 1m}"
	for change, want := range map[string]string{
		"name: ask|name: ../ask":       `providers[0]: name: "../ask" must be the name of a file`,
		"io/v1|io/v1alpha1":            `apiVersion: unsupported value "credentialprovider.kubelet.k8s.io/v1alpha1"`,
		"matchImages: [a]|args: []":    "matchImages: name at least one",
		"1m|-1m":                       "defaultCacheDuration: must be 0 or more",
		"name: ask|nome: ask":          `unknown field "nome"`,
		"1m|1m, tokenAttributes: {a: ": "read plugin configuration",
	} {
		before, after, _ := strings.Cut(change, "|")
		file := filepath.Join(folder, "bad.yaml")
		require.NoError(t, os.WriteFile(file, []byte("providers: ["+strings.Replace(good, before, after, 1)+"]"), 0o600))
		_, err := credentials.LoadPlugins(credentials.PluginConfig{File: file})
		assert.ErrorContains(t, err, want)
	}
}
