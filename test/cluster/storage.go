package cluster

import (
	"context"
	"fmt"
	"log"
	"os"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/utils/ptr"
)

// createStorageClass creates the default class. Its volumes are folders of the machine that all nodes share, made by
// the controller manager's hostPath provisioner.
func createStorageClass(ctx context.Context, client kubernetes.Interface) error {
	class := &storagev1.StorageClass{
		ObjectMeta: metav1.ObjectMeta{
			Name:        "standard",
			Annotations: map[string]string{"storageclass.kubernetes.io/is-default-class": "true"},
		},
		Provisioner:          "kubernetes.io/host-path",
		AllowVolumeExpansion: new(true),
		ReclaimPolicy:        ptr.To(corev1.PersistentVolumeReclaimDelete),
		VolumeBindingMode:    ptr.To(storagev1.VolumeBindingImmediate),
	}
	_, err := client.StorageV1().StorageClasses().Create(ctx, class, metav1.CreateOptions{})
	if err != nil && !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("create storage class: %w", err)
	}
	return nil
}

// expandVolumes sets the capacity of every claim to its requested size. The hostPath provisioner leaves this to an
// external controller. The API server has already checked that the StorageClass allows it, and folders have no size.
func expandVolumes(ctx context.Context, kubeconfig string) error {
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return fmt.Errorf("read kubeconfig: %w", err)
	}
	config.UserAgent = "volume-expander"
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return fmt.Errorf("make client: %w", err)
	}
	logger := log.New(os.Stderr, "", log.LstdFlags)
	expand := func(object any) {
		claim, ok := object.(*corev1.PersistentVolumeClaim)
		if !ok || !wantsExpansion(claim) {
			return
		}
		if err := expandVolume(ctx, client, claim); err != nil {
			logger.Print(err)
		}
	}
	factory := informers.NewSharedInformerFactory(client, 0)
	_, err = factory.Core().V1().PersistentVolumeClaims().Informer().AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    expand,
		UpdateFunc: func(_, object any) { expand(object) },
	})
	if err != nil {
		return fmt.Errorf("watch claims: %w", err)
	}
	factory.Start(ctx.Done())
	<-ctx.Done()
	return nil
}

func wantsExpansion(claim *corev1.PersistentVolumeClaim) bool {
	wanted := claim.Spec.Resources.Requests[corev1.ResourceStorage]
	return claim.Status.Phase == corev1.ClaimBound && wanted.Cmp(claim.Status.Capacity[corev1.ResourceStorage]) > 0
}

// expandVolume sets the capacity of the volume before that of the claim, which clients rely on.
func expandVolume(ctx context.Context, client kubernetes.Interface, claim *corev1.PersistentVolumeClaim) error {
	wanted := claim.Spec.Resources.Requests[corev1.ResourceStorage]
	size := wanted.String()
	volume := fmt.Appendf(nil, `{"spec":{"capacity":{"storage":%q}}}`, size)
	_, err := client.CoreV1().PersistentVolumes().
		Patch(ctx, claim.Spec.VolumeName, types.MergePatchType, volume, metav1.PatchOptions{})
	if err != nil {
		return fmt.Errorf("expand volume %s: %w", claim.Spec.VolumeName, err)
	}
	status := fmt.Appendf(nil, `{"status":{"capacity":{"storage":%q}}}`, size)
	_, err = client.CoreV1().PersistentVolumeClaims(claim.Namespace).
		Patch(ctx, claim.Name, types.MergePatchType, status, metav1.PatchOptions{}, "status")
	if err != nil {
		return fmt.Errorf("expand claim %s/%s: %w", claim.Namespace, claim.Name, err)
	}
	return nil
}
