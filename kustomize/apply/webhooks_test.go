package apply

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// Until its operator answers, a new webhook rejects nothing; what ignores failures anyway is applied as it is.
func TestNewWebhooksAreLenient(t *testing.T) {
	configuration := func(policies ...any) *unstructured.Unstructured {
		var webhooks []any
		for _, policy := range policies {
			webhooks = append(webhooks, map[string]any{"name": "w", "failurePolicy": policy})
		}
		return &unstructured.Unstructured{Object: map[string]any{
			"kind": "ValidatingWebhookConfiguration", "metadata": map[string]any{"name": "web"}, "webhooks": webhooks,
		}}
	}
	strict := configuration("Fail", "Ignore", nil)
	lenient, differs := Lenient(strict)
	assert.True(t, differs)
	assert.True(t, IsLenient(lenient))
	assert.Equal(t, configuration("Ignore", "Ignore", "Ignore").Object["webhooks"], lenient.Object["webhooks"])
	assert.Equal(t, configuration("Fail", "Ignore", nil), strict, "the one that is applied afterwards")
	assert.False(t, IsLenient(strict))

	same, differs := Lenient(configuration("Ignore"))
	assert.False(t, differs)
	assert.Equal(t, configuration("Ignore"), same)
}
