package config_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/flotilla-project/flotilla/core/testing/docs"
	"github.com/flotilla-project/flotilla/core/testing/testenv"
)

func TestExamplesOfThePages(t *testing.T) {
	env.Need(t)
	for _, page := range []string{"imagepulljob", "imagelistpulljob"} {
		t.Run(page, func(t *testing.T) {
			namespace := env.Namespace(t)
			for _, example := range docs.Feature(t, page).Examples() {
				object := &unstructured.Unstructured{Object: testenv.Fields(t, example.YAML)}
				object.SetNamespace(namespace)
				require.NoError(t, env.Client(t).Create(t.Context(), object, client.FieldValidation(metav1.FieldValidationStrict)), example.YAML)
			}
		})
	}
}
