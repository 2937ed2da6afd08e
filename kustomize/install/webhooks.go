package install

import (
	"context"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/flotilla-project/flotilla/kustomize/apply"
)

// lenient returns webhook configurations as they are until their operator answers, and those that differ as they are
// afterwards. A manager becomes ready when its webhooks are configured, and its Service leads to it some seconds later:
// webhooks that are new ignore failures until then, so that no request is rejected for lack of an answer.
func lenient(ctx context.Context, cluster *apply.Cluster, configurations []*unstructured.Unstructured) (first, strict []*unstructured.Unstructured, err error) {
	for _, configuration := range configurations {
		live, err := cluster.Get(ctx, configuration)
		if err != nil {
			return nil, nil, err
		}
		next, differs := configuration, false
		if live == nil || apply.IsLenient(live) {
			next, differs = apply.Lenient(configuration)
		}
		first = append(first, next)
		if differs {
			strict = append(strict, configuration)
		}
	}
	return first, strict, nil
}
