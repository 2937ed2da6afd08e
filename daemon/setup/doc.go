// Package setup puts the node agent's manager together: caches, controllers, webhooks.
//
// The feature's command and the tests use the same functions, so that the tests run the real code. The agent
// itself is put together elsewhere.
package setup
