// Package setup puts the manager of WorkloadSpread together: caches, the controller, webhooks.
//
// The feature's command and the tests use the same functions, so that the tests cover the code that runs.
package setup
