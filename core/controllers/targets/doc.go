// Package targets knows workloads of any kind, which other operators own: those that control a pod, and those that a
// targetRef names.
//
// A pod goes in, and its chain of owners comes out, such as ReplicaSet and Deployment; a workload goes in, and the
// replicas that it shall have come out, as its scale subresource tells them. Objects are read from metadata-only caches,
// which begin with the first question about a kind, and replicas are remembered until the workload's spec changes.
// It is made for webhooks: a question that was asked before asks the API server nothing, and no answer takes longer than
// two seconds. It lists no pods, and it never writes.
package targets
