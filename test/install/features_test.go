package install

import (
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/flotilla-project/flotilla/kustomize/release/overlays"
)

// feature is what a module with manifests installs.
type feature struct {
	// name is the module's folder.
	name string
	// overlay are the objects of its overlay, extended the objects with every component of its config, and definitions
	// the objects of its config/crd.
	overlay, extended, definitions []unstructured.Unstructured
}

// allFeatures finds and renders the features of the work tree: the modules that have a config.
var allFeatures = sync.OnceValues(func() ([]feature, error) {
	configs, err := filepath.Glob(filepath.Join("..", "..", "*", "config", "default"))
	if err != nil {
		return nil, err
	}
	var found []feature
	for _, config := range configs {
		f, err := renderFeature(filepath.Dir(config))
		if err != nil {
			return nil, err
		}
		found = append(found, f)
	}
	return found, nil
})

func renderFeature(config string) (feature, error) {
	f := feature{name: filepath.Base(filepath.Dir(config))}
	components, err := componentsOf(config)
	if err != nil {
		return f, err
	}
	overlay := "resources: [../kustomize/overlays/" + f.name + "]\n"
	for _, part := range []struct {
		objects       *[]unstructured.Unstructured
		kustomization string
	}{
		{&f.overlay, overlay},
		{&f.extended, overlay + "components: [" + strings.Join(components, ", ") + "]\n"},
		{&f.definitions, "resources: [../" + f.name + "/config/crd]\n"},
	} {
		manifests, err := overlays.Render("", part.kustomization)
		if err != nil {
			return f, err
		}
		if *part.objects, err = overlays.Objects(manifests); err != nil {
			return f, err
		}
	}
	return f, nil
}

// componentsOf returns the folders of a config's components that its default leaves out, relative to a folder beside the modules.
func componentsOf(config string) ([]string, error) {
	files, err := filepath.Glob(filepath.Join(config, "*", "kustomization.yaml"))
	if err != nil {
		return nil, err
	}
	byDefault, err := os.ReadFile(filepath.Join(config, "default", "kustomization.yaml"))
	if err != nil {
		return nil, err
	}
	var found []string
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		folder := filepath.Dir(file)
		there := strings.Contains(string(byDefault), "\n- ../"+filepath.Base(folder)+"\n")
		if strings.Contains(string(text), "\nkind: Component\n") && !there {
			found = append(found, path.Join("..", filepath.Base(filepath.Dir(config)), "config", filepath.Base(folder)))
		}
	}
	return found, nil
}

// features returns all features that can be installed, at least one.
func features(t *testing.T) []feature {
	t.Helper()
	found, err := allFeatures()
	require.NoError(t, err)
	require.NotEmpty(t, found)
	return found
}

// of returns the objects of a kind. Fields that the kind does not know fail the test.
func of[T any](t *testing.T, objects []unstructured.Unstructured, kind string) []T {
	t.Helper()
	var found []T
	for _, o := range objects {
		if o.GetKind() == kind {
			var object T
			require.NoError(t, runtime.DefaultUnstructuredConverter.FromUnstructuredWithValidation(o.Object, &object, true), o.GetName())
			found = append(found, object)
		}
	}
	return found
}

// one returns the only object of a kind.
func one[T any](t *testing.T, objects []unstructured.Unstructured, kind string) T {
	t.Helper()
	found := of[T](t, objects, kind)
	require.Len(t, found, 1, kind)
	return found[0]
}

// crds returns the CustomResourceDefinitions.
func crds(objects []unstructured.Unstructured) []unstructured.Unstructured {
	return slices.DeleteFunc(slices.Clone(objects), func(o unstructured.Unstructured) bool {
		return o.GetKind() != "CustomResourceDefinition"
	})
}

// versions returns the versions of a CustomResourceDefinition.
func versions(crd unstructured.Unstructured) []map[string]any {
	var all []map[string]any
	list, _, _ := unstructured.NestedSlice(crd.Object, "spec", "versions")
	for _, version := range list {
		all = append(all, version.(map[string]any))
	}
	return all
}

// isScaled reports whether the kind of a CustomResourceDefinition has replicas.
func isScaled(crd unstructured.Unstructured) bool {
	return slices.ContainsFunc(versions(crd), func(version map[string]any) bool {
		_, found, _ := unstructured.NestedMap(version, "subresources", "scale")
		return found
	})
}

// ownKinds returns the plural names of the kinds that the feature defines.
func (f feature) ownKinds(t *testing.T) []string {
	t.Helper()
	var plurals []string
	for _, crd := range crds(f.overlay) {
		plural, of, _ := strings.Cut(crd.GetName(), ".")
		require.Contains(t, groups, of)
		plurals = append(plurals, plural)
	}
	require.NotEmpty(t, plurals)
	return plurals
}

// webhooks returns the webhooks of all configurations. Fields that only mutating webhooks have are left out.
func webhooks(t *testing.T, objects []unstructured.Unstructured) []admissionregistrationv1.ValidatingWebhook {
	t.Helper()
	var all []admissionregistrationv1.ValidatingWebhook
	for _, c := range of[admissionregistrationv1.ValidatingWebhookConfiguration](t, objects, "ValidatingWebhookConfiguration") {
		all = append(all, c.Webhooks...)
	}
	for _, c := range of[admissionregistrationv1.MutatingWebhookConfiguration](t, objects, "MutatingWebhookConfiguration") {
		for _, w := range c.Webhooks {
			all = append(all, admissionregistrationv1.ValidatingWebhook{
				Name: w.Name, ClientConfig: w.ClientConfig, Rules: w.Rules, FailurePolicy: w.FailurePolicy, MatchPolicy: w.MatchPolicy,
				NamespaceSelector: w.NamespaceSelector, ObjectSelector: w.ObjectSelector, SideEffects: w.SideEffects,
				TimeoutSeconds: w.TimeoutSeconds, AdmissionReviewVersions: w.AdmissionReviewVersions, MatchConditions: w.MatchConditions,
			})
		}
	}
	return all
}
