package cluster

import "fmt"

// The address plan. Clusters side by side all use it: each has namespaces of its own.
const (
	controlPlaneAddress = "10.210.0.1"
	servicePrefix       = "10.96.0.0/16"
	// apiServiceAddress is the first of the Service range, which the API server gives to its own Service. It is an
	// address of the control plane's namespace.
	apiServiceAddress = "10.96.0.1"
	// dnsAddress is told to pods as their name server. Nothing answers there: the control plane rejects Service
	// addresses at once, so that a look-up fails without waiting.
	dnsAddress   = "10.96.0.10"
	apiPort      = 443
	registryPort = 5000
	nodePrefix   = 24
)

func nodeName(index int) string { return fmt.Sprintf("n%d", index) }

func nodeAddress(index int) string { return fmt.Sprintf("10.210.0.%d", 10+index) }

func podPrefix(index int) string { return fmt.Sprintf("10.211.%d.0/24", index) }

func loopback(port int) string { return fmt.Sprintf("127.0.0.1:%d", port) }
