// Package setup puts the StatefulSet operator together: featureGates, flags, the workload and its webhook.
package setup
