package credentials

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/flotilla-project/flotilla/daemon/internal/agent/cri"
)

// dockerEntry is one registry in a docker configuration.
type dockerEntry struct {
	Username string `json:"username"`
	Password string `json:"password"`
	// Auth is username and password with a colon between, in base64. It wins over the two.
	Auth          string `json:"auth"`
	IdentityToken string `json:"identitytoken"`
	RegistryToken string `json:"registrytoken"`
}

// Parse reads a secret of type kubernetes.io/dockerconfigjson or kubernetes.io/dockercfg. Empty entries are left out.
// Errors never quote the content.
func Parse(secret *corev1.Secret) ([]Entry, error) {
	registries := map[string]dockerEntry{}
	switch secret.Type {
	case corev1.SecretTypeDockerConfigJson:
		var config struct {
			Auths map[string]dockerEntry `json:"auths"`
		}
		if err := json.Unmarshal(secret.Data[corev1.DockerConfigJsonKey], &config); err != nil {
			return nil, fmt.Errorf("key %s must be the JSON of a docker configuration", corev1.DockerConfigJsonKey)
		}
		registries = config.Auths
	case corev1.SecretTypeDockercfg:
		if err := json.Unmarshal(secret.Data[corev1.DockerConfigKey], &registries); err != nil {
			return nil, fmt.Errorf("key %s must be the JSON of a docker configuration", corev1.DockerConfigKey)
		}
	default:
		return nil, fmt.Errorf("type %q has no credentials of a registry", secret.Type)
	}

	var entries []Entry
	for _, registry := range slices.Sorted(maps.Keys(registries)) {
		auth, err := registries[registry].decode()
		if err != nil {
			return nil, fmt.Errorf("entry of registry %s: %w", registry, err)
		}
		if auth != (cri.Auth{}) {
			entries = append(entries, Entry{Location: registry, Auth: auth})
		}
	}
	return entries, nil
}

func (e dockerEntry) decode() (cri.Auth, error) {
	auth := cri.Auth{
		Username:      e.Username,
		Password:      e.Password,
		IdentityToken: e.IdentityToken,
		RegistryToken: e.RegistryToken,
	}
	if e.Auth == "" {
		return auth, nil
	}
	text, err := base64.RawStdEncoding.DecodeString(strings.TrimRight(e.Auth, "="))
	if err != nil {
		return auth, errors.New("auth must be base64")
	}
	username, password, found := strings.Cut(string(text), ":")
	if !found {
		return auth, errors.New("auth must have a colon between username and password")
	}
	auth.Username = username
	auth.Password = strings.TrimRight(password, "\x00")
	return auth, nil
}
