// Package cloneset tells the CloneSet operator's user stories on a real cluster: real kubelets, real containers, the
// operator installed as a pod from its overlay, its webhook behind a Service.
package cloneset
