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
		nilIs(&v.HostPath.Type, corev1.HostPathUnset)
	case v.Secret != nil:
		nilIs(&v.Secret.DefaultMode, corev1.SecretVolumeSourceDefaultMode)
	case v.ConfigMap != nil:
		nilIs(&v.ConfigMap.DefaultMode, corev1.ConfigMapVolumeSourceDefaultMode)
	case v.DownwardAPI != nil:
		nilIs(&v.DownwardAPI.DefaultMode, corev1.DownwardAPIVolumeSourceDefaultMode)
		defaultDownwardFiles(v.DownwardAPI.Items)
	case v.Projected != nil:
		defaultProjected(v.Projected)
	case v.Ephemeral != nil:
		if v.Ephemeral.VolumeClaimTemplate != nil {
			v.Ephemeral.VolumeClaimTemplate.CreationTimestamp = metav1.Time{}
			DefaultClaim(&v.Ephemeral.VolumeClaimTemplate.Spec)
		}
	case v.Image != nil:
		absentIs(&v.Image.PullPolicy, pullPolicyByTag(v.Image.Reference))
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
	nilIs(&p.DefaultMode, corev1.ProjectedVolumeSourceDefaultMode)
	for i := range p.Sources {
		if token := p.Sources[i].ServiceAccountToken; token != nil {
			nilIs(&token.ExpirationSeconds, 3600)
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
		absentIs(&v.ISCSI.ISCSIInterface, "default")
	case v.RBD != nil:
		absentIs(&v.RBD.RBDPool, "rbd")
		absentIs(&v.RBD.RadosUser, "admin")
		absentIs(&v.RBD.Keyring, "/etc/ceph/keyring")
	case v.AzureDisk != nil:
		nilIs(&v.AzureDisk.CachingMode, corev1.AzureDataDiskCachingReadWrite)
		nilIs(&v.AzureDisk.Kind, corev1.AzureSharedBlobDisk)
		nilIs(&v.AzureDisk.FSType, "ext4")
		nilIs(&v.AzureDisk.ReadOnly, false)
	case v.ScaleIO != nil:
		absentIs(&v.ScaleIO.StorageMode, "ThinProvisioned")
		absentIs(&v.ScaleIO.FSType, "xfs")
	}
}
