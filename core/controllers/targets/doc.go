// Package targets reads workloads of any kind, also of kinds that other operators own: those that control a pod, and
// those that a targetRef names.
//
// A pod goes in, and its chain of owners comes out, such as ReplicaSet and Deployment; a workload goes in, and its
// wanted replicas come out, from its scale subresource. Objects are read from metadata-only caches, which start with
// the first question about a kind, and replicas are cached until the workload's spec changes or, for kinds in
// Options.Republishes, the workload itself. It is made for webhooks: a repeated question sends no request to the API
// server, and no answer takes longer than two seconds. It lists no pods, and it never writes.
package targets
