// Package workloads has what the tests of all workloads' webhooks share: objects as users write them, and what must be
// true of the webhooks of any workload.
//
// A test package describes its kind in a Webhooks and adds what is the kind's own. The package must not be imported by
// code that ships.
package workloads
