// Package setup puts the node agent's manager together: caches, controllers, webhooks.
//
// The feature's command and the tests use the same functions, so that what is tested is what runs. The agent
// itself is put together elsewhere.
package setup
