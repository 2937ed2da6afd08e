package docs

import (
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
)

const keysPage = "docs/reference/labels-and-annotations.md"

var (
	// ofKey are the names of constants for keys of metadata and for environment variables.
	ofKey   = regexp.MustCompile(`(Label|LabelPrefix|Annotation|Finalizer|Env)$`)
	ofOurs  = regexp.MustCompile(`^(([a-z0-9-]+\.)*(kruise|argoproj|fluxcd)\.io|app\.kubernetes\.io|meta\.helm\.sh)/([a-z0-9-]*)$`)
	inYAML  = regexp.MustCompile(`(([a-z0-9-]+\.)*kruise\.io|app\.kubernetes\.io)/[a-z0-9-]+`)
	version = regexp.MustCompile(`/v\d+[a-z0-9]*$`)
)

// keysOf returns the keys that code and manifests read or write.
func keysOf(t *testing.T) map[string]bool {
	t.Helper()
	found := map[string]bool{}
	for _, key := range []string{ // constants of Kubernetes
		appsv1.StatefulSetPodNameLabel, appsv1.PodIndexLabel, appsv1.DeprecatedTemplateGeneration, corev1.MirrorPodAnnotationKey,
	} {
		found[key] = true
	}
	all := sources(t)
	for name, values := range constants(all, func(s source) bool {
		return !strings.HasPrefix(s.path, "core/operator/features/") && path.Base(path.Dir(s.path)) != "featuregates"
	}) {
		for _, value := range values {
			if ofKey.MatchString(name) && !ofContainers(value) {
				found[value] = true
			}
		}
	}
	for _, file := range all {
		for _, text := range file.texts() {
			if ofOurs.MatchString(text) && !version.MatchString(text) {
				found[text] = true
			}
		}
	}
	for _, folder := range []string{"*/config", "kustomize/base", "kustomize/components"} {
		folders, err := filepath.Glob(filepath.Join(root, folder))
		require.NoError(t, err)
		for _, folder := range folders {
			require.NoError(t, filepath.WalkDir(folder, func(file string, _ fs.DirEntry, err error) error {
				if err != nil || filepath.Ext(file) != ".yaml" || strings.Contains(file, "/crd/") {
					return err
				}
				text, err := os.ReadFile(file)
				for _, key := range inYAML.FindAllString(string(text), -1) {
					found[key] = !version.MatchString(key) || found[key]
				}
				return err
			}))
		}
	}
	for key, ours := range found {
		if !ours {
			delete(found, key)
		}
	}
	return found
}

// ofContainers reports whether a key is one of the runtime's containers, or a variable of a process of ours.
func ofContainers(key string) bool {
	return strings.HasPrefix(key, "io.kubernetes.") || slices.Contains([]string{"NODE_NAME", "HOST_IP", "CUSTOM_RESOURCE_ENABLE"}, key)
}

// The page has each key of the code, and no other one.
func TestKeysAreThoseOfTheCode(t *testing.T) {
	known, listed := keysOf(t), map[string]bool{}
	for _, key := range quotes(t, keysPage) {
		assert.False(t, listed[key], "%s is listed twice", key)
		listed[key] = true
	}
	assert.Greater(t, len(known), 70)
	for key := range known {
		assert.True(t, listed[key], "the page lacks %s", key)
	}
	conditions := []string{"InPlaceUpdateReady", "KruisePodReady", "SidecarTerminated"}
	for key := range listed {
		assert.True(t, known[key] || slices.Contains(conditions, key), "nothing in the code has key %s", key)
	}
}
