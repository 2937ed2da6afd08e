// Package forecast tells users at admission what an edit of a pod template will do to the pods of a workload.
//
// The two templates and the settings of the rollout go in, warnings come out. Whether pods are recreated or updated in
// place is decided by the functions that decide it for the rollout: inplace.Diff and the policy of podupdate.
package forecast
