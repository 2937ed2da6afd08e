// Package daemon has the stories of the node agent on a real cluster: it recreates containers, pulls images ahead,
// restarts containers whose environment reads changed metadata, and starts containers in order.
package daemon
