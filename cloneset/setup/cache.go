package setup

import (
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/flotilla-project/flotilla/core/contract"
	"github.com/flotilla-project/flotilla/core/controllers/fastclient"
)

// Cache says what of each kind the operator keeps in memory: pods and claims that carry an instance
// id, revisions of others without their data, nodes without their images. What other workloads run
// costs next to nothing. An empty namespace means all.
func Cache(namespace string) (cache.Options, error) {
	pods, err := fastclient.PodsWithLabel(contract.InstanceIDLabel)
	if err != nil {
		return cache.Options{}, err
	}
	hasID, err := labels.NewRequirement(contract.InstanceIDLabel, selection.Exists, nil)
	if err != nil {
		return cache.Options{}, fmt.Errorf("select claims: %w", err)
	}
	return fastclient.CacheOptions(namespace, map[client.Object]cache.ByObject{
		&corev1.Pod{}: fastclient.Within(namespace, pods),
		&corev1.PersistentVolumeClaim{}: fastclient.Within(namespace, cache.ByObject{
			Label: labels.NewSelector().Add(*hasID), Transform: fastclient.Trim,
		}),
		&appsv1.ControllerRevision{}: fastclient.Within(namespace, fastclient.Revisions(contract.AppsGroup)),
		&corev1.Node{}:               fastclient.Nodes(),
	}), nil
}
