package v1beta1

// ProgressiveCreatePodAnnotation set to "true" on a v1alpha1 DaemonSet is its way to say
// spec.scaleStrategy.partitionedScaling. Written by users, read by conversion and the DaemonSet operator.
const ProgressiveCreatePodAnnotation = "daemonset.kruise.io/progressive-create-pod"
