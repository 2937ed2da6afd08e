// Package setup puts the StatefulSet feature into a manager: caches, indexes, controller, webhooks.
//
// The feature's command and the tests use the same functions, so that what is tested is what runs.
package setup
