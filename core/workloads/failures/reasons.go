package failures

// WaitReason is the reason of waits for the end of a pause: a failed pod is not replaced yet, since others have failed
// before.
const WaitReason = "FailedPodBackOff"

// Reasons are all that users read of this package.
var Reasons = []string{WaitReason}
