package disruption

// Workload is a workload that a budget's pods belong to.
type Workload struct {
	// Name for people, such as "Deployment web".
	Name string
	// Replicas is how many pods it wants. If Unknown is set, Replicas is how many active pods it has.
	Replicas int32
	// Drifts is true if Replicas changes without an event, as the replicas of a DaemonSet with the nodes.
	Drifts bool
	// Unknown is one of the reasons of ConditionReplicasUnknown, and Message has the details.
	Unknown, Message string
}
