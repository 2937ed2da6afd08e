package credentials

import (
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	corev1 "k8s.io/api/core/v1"
)

// A pull secret can have any content, and its registries any name.
func FuzzParse(f *testing.F) {
	for _, text := range []string{
		`{"auths":{"https://index.docker.io/v1/":{"auth":"YTpi"},"*.example.com:5000/team":{"username":"a","password":"b"}}}`,
		`{"registry.example.com":{"identitytoken":"t"},"[":{"auth":"YQ=="},"":{}}`, `{"auths":null}`, `[]`,
	} {
		f.Add([]byte(text), "registry.example.com:5000/team/app:1")
	}
	f.Fuzz(func(t *testing.T, text []byte, image string) {
		for _, secret := range []corev1.Secret{
			{Type: corev1.SecretTypeDockerConfigJson, Data: map[string][]byte{corev1.DockerConfigJsonKey: text}},
			{Type: corev1.SecretTypeDockercfg, Data: map[string][]byte{corev1.DockerConfigKey: text}},
		} {
			entries, err := Parse(&secret)
			if err == nil {
				assert.LessOrEqual(t, len(Match(entries, image)), len(entries))
			}
		}
	})
}

// The configuration of plugins names programs, which are in one folder, and images, which are any.
func FuzzPlugins(f *testing.F) {
	const one = `
apiVersion: kubelet.config.k8s.io/v1
kind: CredentialProviderConfig
providers:
- name: ecr
  apiVersion: credentialprovider.kubelet.k8s.io/v1
  matchImages: ["*.dkr.ecr.*.example.com", "registry.example.com:5000/team"]
  defaultCacheDuration: 12h
  args: [get]
  env: [{name: REGION, value: eu}]
`
	for _, text := range []string{one, `{"providers":[{"name":"..","matchImages":[""]}]}`, "providers: null", "providers: [null]", "- a"} {
		f.Add([]byte(text), "registry.example.com:5000/team/app:1")
	}
	f.Fuzz(func(t *testing.T, text []byte, image string) {
		plugins, err := parsePlugins(text)
		if err != nil {
			return
		}
		for _, p := range plugins {
			p.isFor(parseLocation(image))
			assert.Equal(t, "/plugins", filepath.Dir(filepath.Join("/plugins", p.Name)), "the program is in the folder")
		}
	})
}

// A plugin can print anything.
func FuzzResponse(f *testing.F) {
	f.Add([]byte(`{"apiVersion":"credentialprovider.kubelet.k8s.io/v1","kind":"CredentialProviderResponse","cacheKeyType":"Registry","cacheDuration":"1h",
		"auth":{"*.example.com:5000/team":{"username":"a","password":"b"},"[":{},"":{"password":"c"}}}`), "registry.example.com:5000/team/app:1")
	f.Add([]byte(`{"apiVersion":"credentialprovider.kubelet.k8s.io/v1","auth":null}`), "app")
	f.Fuzz(func(t *testing.T, output []byte, image string) {
		response, entries, err := parseResponse(output)
		if err == nil {
			assert.Len(t, entries, len(response.Auth))
			assert.LessOrEqual(t, len(Match(entries, image)), len(entries))
		}
	})
}
