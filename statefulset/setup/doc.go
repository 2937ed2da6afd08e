// Package setup puts the StatefulSet operator together: feature gates, flags, the workload and its webhook.
package setup
