package v1beta1

// OwnedByAnnotation is set on a claim that was resized. Its value is the name of the StatefulSet that waits for the
// resize. Written and read by the StatefulSet operator.
const OwnedByAnnotation = "apps.kruise.io/owned-by-asts"

// RemountAnnotation is set on a claim with a volume that has grown and a file system that grows with the next mount. Its value
// is the UID of the pod that is replaced for that, a slash and the size that the claim requests. One pod is replaced
// for each size. Written and read by the StatefulSet operator.
const RemountAnnotation = "apps.kruise.io/remount-for"

// DeleteWhenScaledAnnotation is set on the claims of pods of a StatefulSet that deletes claims with ordinals that are scaled
// in. Its value is the UID of the StatefulSet. A claim with it is deleted also where its ordinal has no pod when it
// is scaled in. Written and read by the StatefulSet operator.
const DeleteWhenScaledAnnotation = "apps.kruise.io/delete-when-scaled"
