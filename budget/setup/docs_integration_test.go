package setup

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/flotilla-project/flotilla/core/operator/features"
	"github.com/flotilla-project/flotilla/core/testing/docs"
	"github.com/flotilla-project/flotilla/core/testing/testenv"

	"github.com/flotilla-project/flotilla/budget/api/v1beta1"
	"github.com/flotilla-project/flotilla/budget/config"
	"github.com/flotilla-project/flotilla/budget/internal/disruption"
	"github.com/flotilla-project/flotilla/budget/internal/featuregates"
)

// Users look up in the feature's page, and in that of conditions and events, what budgets and events say.
func TestThePageExplainsEveryWord(t *testing.T) {
	page := docs.Feature(t, "podunavailablebudget", "reference/events")
	page.Names(disruption.Reasons, disruption.ConditionTypes, []string{
		v1beta1.ProtectOperationsAnnotation, v1beta1.ProtectTotalReplicasAnnotation, v1beta1.IgnoredPodSelectorAnnotation,
		v1beta1.RelatedAnnotation, v1beta1.LegacyRelatedAnnotation, v1beta1.UnavailableLabelPrefix, v1beta1.NamespaceLabel,
		string(featuregates.PodUnavailableBudgetDeleteGate), string(featuregates.PodUnavailableBudgetUpdateGate), string(featuregates.InPlacePodVerticalScaling),
	})
	page.Quotes([]string{v1beta1.NoProtectAnnotation})
}

// Every example of the page, and the sample, is accepted as it stands.
func TestExamplesAreAccepted(t *testing.T) {
	c := serve(t, features.Defaults(featuregates.All()...))
	env.ConvertHere(t, "podunavailablebudgets.policy.kruise.io", older("probe"))
	namespace := env.Namespace(t)
	examples := docs.Feature(t, "podunavailablebudget").Examples()
	require.Len(t, examples, 3)
	for _, example := range examples {
		object := &unstructured.Unstructured{Object: testenv.Fields(t, example.YAML)}
		object.SetNamespace(namespace)
		require.NoError(t, c.Create(t.Context(), object, client.FieldValidation(metav1.FieldValidationStrict)), example.YAML)
	}
	for _, object := range testenv.Manifests(t, config.Files, "samples/deployment.yaml") {
		object.SetNamespace(env.Namespace(t))
		assert.NoError(t, c.Create(t.Context(), object, client.FieldValidation(metav1.FieldValidationStrict)), object.GetName())
	}
}
