package podspec

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func defaultVolume(v *corev1.VolumeSource) {
	if *v == (corev1.VolumeSource{}) {
		v.EmptyDir = &corev1.EmptyDirVolumeSource{}
	}
	switch {
	case v.HostPath != nil:
		setDefaultPointer(&v.HostPath.Type, corev1.HostPathUnset)
	case v.Secret != nil:
		setDefaultPointer(&v.Secret.DefaultMode, corev1.SecretVolumeSourceDefaultMode)
	case v.ConfigMap != nil:
		setDefaultPointer(&v.ConfigMap.DefaultMode, corev1.ConfigMapVolumeSourceDefaultMode)
	case v.DownwardAPI != nil:
		setDefaultPointer(&v.DownwardAPI.DefaultMode, corev1.DownwardAPIVolumeSourceDefaultMode)
		defaultDownwardFiles(v.DownwardAPI.Items)
	case v.Projected != nil:
		defaultProjected(v.Projected)
	case v.Ephemeral != nil:
		if v.Ephemeral.VolumeClaimTemplate != nil {
			v.Ephemeral.VolumeClaimTemplate.CreationTimestamp = metav1.Time{}
			DefaultClaim(&v.Ephemeral.VolumeClaimTemplate.Spec)
		}
	case v.Image != nil:
		setDefault(&v.Image.PullPolicy, pullPolicyByTag(v.Image.Reference))
	default:
		defaultStorageVolume(v)
	}
}

func defaultDownwardFiles(files []corev1.DownwardAPIVolumeFile) {
	for i := range files {
		defaultFieldRef(files[i].FieldRef)
	}
}

func defaultProjected(p *corev1.ProjectedVolumeSource) {
	setDefaultPointer(&p.DefaultMode, corev1.ProjectedVolumeSourceDefaultMode)
	for i := range p.Sources {
		if token := p.Sources[i].ServiceAccountToken; token != nil {
			setDefaultPointer(&token.ExpirationSeconds, 3600)
		}
		if p.Sources[i].DownwardAPI != nil {
			defaultDownwardFiles(p.Sources[i].DownwardAPI.Items)
		}
	}
}

// defaultStorageVolume is for the volumes of storage systems.
func defaultStorageVolume(v *corev1.VolumeSource) {
	switch {
	case v.ISCSI != nil:
		setDefault(&v.ISCSI.ISCSIInterface, "default")
	case v.RBD != nil:
		setDefault(&v.RBD.RBDPool, "rbd")
		setDefault(&v.RBD.RadosUser, "admin")
		setDefault(&v.RBD.Keyring, "/etc/ceph/keyring")
	case v.AzureDisk != nil:
		setDefaultPointer(&v.AzureDisk.CachingMode, corev1.AzureDataDiskCachingReadWrite)
		setDefaultPointer(&v.AzureDisk.Kind, corev1.AzureSharedBlobDisk)
		setDefaultPointer(&v.AzureDisk.FSType, "ext4")
		setDefaultPointer(&v.AzureDisk.ReadOnly, false)
	case v.ScaleIO != nil:
		setDefault(&v.ScaleIO.StorageMode, "ThinProvisioned")
		setDefault(&v.ScaleIO.FSType, "xfs")
	}
}
