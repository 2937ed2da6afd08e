// Package running finds the containers of a pod that run as long as the pod, native sidecars included, and tells how
// they run, as the kubelet reports it. It never tells whether that is wanted.
package running
