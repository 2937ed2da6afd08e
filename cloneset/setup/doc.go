// Package setup puts the CloneSet operator together: featureGates, flags, the workload and its webhook.
package setup
