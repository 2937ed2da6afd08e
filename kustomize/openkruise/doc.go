// Package openkruise knows what of OpenKruise a cluster has: its manager, its webhook configurations, and which of its
// features Flotilla is taking over, has taken over or is giving back.
package openkruise
