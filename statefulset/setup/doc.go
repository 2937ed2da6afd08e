// Package setup puts the StatefulSet operator together: gates, flags, the workload and its webhook.
package setup
