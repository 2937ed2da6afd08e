// Package statefulset tells the StatefulSet operator's user stories on a real cluster: real kubelets, real containers,
// real volumes, the operator installed as a pod from its overlay, its webhook behind a Service.
package statefulset
