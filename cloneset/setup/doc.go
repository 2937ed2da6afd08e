// Package setup puts the CloneSet operator together: gates, flags, the workload and its webhook.
package setup
