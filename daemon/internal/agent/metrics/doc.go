// Package metrics names the agent's metrics.
//
// A registry goes in, the agent's collectors come out, registered. Labels never carry names of pods,
// images or containers: their number would have no bound.
package metrics
