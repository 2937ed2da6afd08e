package explain

// helpFor says what helps where an operator gives the reason; empty where waiting does.
func helpFor(reason string) string { //nolint:gocyclo // a table
	switch reason {
	case "InvalidSpec":
		return "Correct the field that the message names; running pods are kept meanwhile."
	case "ProgressDeadlineExceeded":
		return "Correct the template, or go back with flotilla rollout undo; the rollout goes on by itself then."
	case "MaxUnavailable", "MaxSurge", "BlockedByUnavailablePods", "BlockedByUnavailableNodes":
		return "As many pods as allowed are out of service: look at those pods, or raise maxUnavailable."
	case "ScaleMaxUnavailable":
		return "Look at the pods that are not available, or raise scaleStrategy.maxUnavailable."
	case "NotInPlace":
		return "The policy InPlaceOnly forbids new pods: change the template in what can change in place, or the policy; or delete the pod, if it is down."
	case "NodeAgentMissing":
		return "Install the node agent (flotilla install daemon), or set the policy to InPlaceIfPossible, which recreates such pods."
	case "KubeletBehind":
		return "If it lasts, look at the node and its kubelet."
	case "ContainerPending", "ContainerNotReady":
		return "Look at that container: kubectl describe pod, kubectl logs."
	case "Resize", "ResizeDeferred", "ResizeInfeasible", "ResizeError":
		return "Request less, free resources on the node, or set resizeDeadlineSeconds to have such pods recreated."
	case "NodeTooSmall":
		return "Request less in the template, or replace the node by a larger one; a set with resizeDeadlineSeconds recreates the pod elsewhere, a DaemonSet does not."
	case "BlockedByBudget":
		return "A disruption budget lets no more pods out of service: kubectl get pub; the update goes on by itself when other pods are available."
	case "Blocked", "Refused", "FailedScale", "FailedUpdate", "Error":
		return "The message is of whoever refused the write: a quota, a budget, a policy or a webhook. The write is tried again by itself."
	case "ClaimTerminating", "VolumeResizing", "VolumeResizeFailed":
		return "Look at the claim: kubectl describe pvc."
	case "NoEligibleNodes":
		return "Change the node selector, the affinity or the tolerations of the template, or label nodes."
	case "PreDeleteHook", "InPlaceUpdateHook", "PreNormalHook":
		return "Look at the controller that answers the hook."
	case "FailedPodBackOff":
		return "See why the pods failed: kubectl describe pod."
	}
	return ""
}
