// Package statefulset has the user stories of the StatefulSet operator on a real cluster, with real kubelets,
// containers and volumes. The operator is installed as a pod from its overlay, with its webhook behind a Service.
package statefulset
