package v1beta1

// OwnedByAnnotation stands on a claim that was resized. Its value is the name of the set in the claim's
// namespace that waits for the resize. Written and read by the StatefulSet operator.
const OwnedByAnnotation = "apps.kruise.io/owned-by-asts"

// RemountAnnotation stands on a claim whose volume has grown and whose file system grows with the next
// mount. Its value is the UID of the pod that is replaced for that, a slash and the size that the claim
// asks for. Each size lets one pod be replaced. Written and read by the StatefulSet operator.
const RemountAnnotation = "apps.kruise.io/remount-for"
