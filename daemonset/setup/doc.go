// Package setup puts the DaemonSet operator together: feature gates, flags, the workload and its webhook.
package setup
