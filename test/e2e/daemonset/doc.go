// Package daemonset has the user stories of the DaemonSet operator on a real cluster, with real kubelets and containers.
// The operator is installed as a pod from its overlay, with its webhook behind a Service.
package daemonset
