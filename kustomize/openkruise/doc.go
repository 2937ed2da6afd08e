// Package openkruise knows the parts of OpenKruise in a cluster: its manager, its webhook configurations, and which of its
// features Flotilla is taking over, has taken over or is giving back.
package openkruise
