// Package setup puts the CloneSet operator together: feature gates, flags, the workload and its webhook.
package setup
