// Package prestop defines which preStop hooks a node agent can run. Admission warns of the others; the agent reports them.
package prestop

import (
	"net"
	"strings"
)

// IsLoopback reports whether the host of a hook is the machine's own. The kubelet shares it with pods in the node's
// network; the agent, which has a network of its own, does not.
func IsLoopback(host string) bool {
	address := net.ParseIP(strings.Trim(host, "[]"))
	return strings.EqualFold(host, "localhost") || address != nil && address.IsLoopback()
}
