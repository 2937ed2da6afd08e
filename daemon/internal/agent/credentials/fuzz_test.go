package credentials

import (
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
