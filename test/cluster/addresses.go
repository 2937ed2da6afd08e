package cluster

import "fmt"

// The address plan. All clusters on a machine use it: each has its own network namespaces.
const (
	controlPlaneAddress = "10.210.0.1"
	servicePrefix       = "10.96.0.0/16"
	// apiServiceAddress is the first address of the Service range, which the API server assigns to its own Service. The
	// control plane's network namespace has it.
	apiServiceAddress = "10.96.0.1"
	// dnsAddress is the name server in the configuration of pods. There is none: the control plane rejects connections
	// to Service addresses, so that a lookup fails without a timeout.
	dnsAddress   = "10.96.0.10"
	apiPort      = 443
	registryPort = 5000
	nodePrefix   = 24
)

func nodeName(index int) string { return fmt.Sprintf("n%d", index) }

func nodeAddress(index int) string { return fmt.Sprintf("10.210.0.%d", 10+index) }

func podPrefix(index int) string { return fmt.Sprintf("10.211.%d.0/24", index) }

func loopback(port int) string { return fmt.Sprintf("127.0.0.1:%d", port) }
