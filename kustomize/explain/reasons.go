package explain

// helpFor returns the remedy for the reason of an operator; empty if there is none but to wait.
func helpFor(reason string) string { //nolint:gocyclo // a table
	switch reason {
	case "InvalidSpec":
		return "Correct the field in the message; running pods stay until then."
	case "ProgressDeadlineExceeded":
		return "Correct the template, or roll back with flotilla rollout undo; the rollout then continues."
	case "MaxUnavailable", "MaxSurge", "BlockedByUnavailablePods", "BlockedByUnavailableNodes":
		return "As many pods as allowed are unavailable: check these pods, or raise maxUnavailable."
	case "ScaleMaxUnavailable":
		return "Check the pods that are not available, or raise scaleStrategy.maxUnavailable."
	case "NotInPlace":
		return "With InPlaceOnly only images, labels, annotations, cpu and memory can change. Undo the other change, " +
			"or set the policy to InPlaceIfPossible. If the pod is down, you can also delete it."
	case "NodeAgentMissing":
		return "Install the node agent (flotilla install daemon), or set the policy to InPlaceIfPossible, which recreates such pods."
	case "KubeletBehind":
		return "If this lasts, check the node and its kubelet."
	case "ContainerPending", "ContainerNotReady":
		return "Check that container: kubectl describe pod, kubectl logs."
	case "GracePeriod":
		return "Wait until the grace period of the update is over."
	case "NextBatch":
		return "Wait: the next containers of the pod were just changed."
	case "Superseded", "AnnotationNotValid":
		return "Wait: the update of the pod starts again."
	case "ClaimOwners":
		return "Wait: the operator corrects the owner references of the PVCs first."
	case "Resize", "ResizeDeferred", "ResizeInfeasible", "ResizeError":
		return "Request less, free resources on the node, or set resizeDeadlineSeconds to have such pods recreated."
	case "NodeTooSmall":
		return "Request less in the template, or replace the node by a larger one. With resizeDeadlineSeconds a CloneSet or StatefulSet " +
			"recreates the pod elsewhere."
	case "BlockedByBudget":
		return "A disruption budget allows no more unavailable pods: kubectl get pub. The update continues when other pods are available."
	case "Blocked", "Refused", "FailedScale", "FailedUpdate", "Error":
		return "The message names the cause: a quota, a budget, a policy or a webhook. The operator tries the write again."
	case "Conflict":
		return "Wait: another client changed the object at the same time, and the operator tries again with its new state."
	case "ClaimTemplateRemoved":
		return "Add the claim template in the message to the workload again, or lower partition so that these pods are updated. " +
			"For a StatefulSet you can also create the PVC in the message."
	case "ClaimsInUse":
		return "Wait: the new pod gets the PVCs and the name of a pod that is being deleted. If this lasts, check the old pod: kubectl describe pod."
	case "WaitingForStaleClaim":
		return "Wait: the PVC of the previous pod is being deleted together with this pod. If this lasts, check both: kubectl describe pod, kubectl describe pvc."
	case "ClaimTerminating", "VolumeResizing", "VolumeResizeFailed":
		return "Check the PVC: kubectl describe pvc."
	case "NoEligibleNodes":
		return "Change the node selector, the affinity or the tolerations of the template, or label nodes."
	case "PreDeleteHook", "InPlaceUpdateHook", "PreNormalHook":
		return "Check the controller that answers the hook."
	case "FailedPodBackOff":
		return "Find the cause of the failed pods: kubectl describe pod."
	}
	return ""
}
