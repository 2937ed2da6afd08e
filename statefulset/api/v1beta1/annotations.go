package v1beta1

// OwnedByAnnotation stands on a claim that was resized. Its value is the name of the set in the claim's
// namespace that waits for the resize. Written and read by the StatefulSet operator.
const OwnedByAnnotation = "apps.kruise.io/owned-by-asts"
