// Package inplace moves a running pod from one revision of its template to another by changing the
// pod object only, so that its UID, node, IP, volumes and untouched containers survive.
//
// Diff reports whether a change of the template can be made in place. Update.Begin writes the start of it, Refresh
// brings it on and reports the present wait: the grace period, the containers of a batch by launch priority, the
// kubelet, the node agent. Everything is written to an action.PodChange, on which the workload sets its revision labels
// and the lifecycle state, so that one step costs one write. The state of the update is in annotations of the pod
// alone: a crash loses nothing.
//
// Each question has a package, and each imports only those below:
//
//	inplace                          what starts an update, and what comes next?
//	completion                       is it done?
//	record             diff          what was written on the pod?   may it change, and what differs?
//	agentreport        quantity      how was a container started?   which cpu and memory does it get?
//	running            annotation    does it run?                   how is an annotation read?
//
// It must never know a workload, touch containers that the template does not name, or compare the
// clocks of two machines.
package inplace
