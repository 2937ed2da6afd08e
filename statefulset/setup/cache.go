package setup

import (
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/fields"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/flotilla-project/flotilla/core/contract"
	"github.com/flotilla-project/flotilla/core/controllers/fastclient"
)

// podLabel is the label by which the cache selects pods.
const podLabel = appsv1.StatefulSetPodNameLabel

// Cache says what of each kind the operator keeps in memory. An empty namespace means all.
//
// Pods are those with a name label. Built-in StatefulSets put it on their pods too, and they must be seen:
// left behind by a built-in set they are to be adopted as soon as they have no owner. While they have one,
// they are no more than a name. The label of the lifecycle state, which no built-in kind writes, would keep
// them out of memory and out of sight. Claims are all there are, because a set knows its own by name only.
func Cache(namespace string) cache.Options {
	pods, err := fastclient.PodsOf(podLabel, contract.AppsGroup)
	if err != nil {
		panic(err) // the label is a constant
	}
	return fastclient.CacheOptions(namespace, map[client.Object]cache.ByObject{
		&corev1.Pod{}:                   fastclient.Within(namespace, pods),
		&corev1.PersistentVolumeClaim{}: fastclient.Within(namespace, cache.ByObject{Transform: fastclient.Trim}),
		&appsv1.ControllerRevision{}:    fastclient.Within(namespace, fastclient.Revisions(contract.AppsGroup)),
		&storagev1.StorageClass{}:       {Transform: fastclient.Trim, Field: fields.Everything()},
	})
}
