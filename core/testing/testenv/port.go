package testenv

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net"
)

const (
	// firstPort and ports are a range below the ephemeral ports of Linux (net.ipv4.ip_local_port_range) and the IANA's.
	firstPort, ports = 20000, 12000
	// portTries is how many ports are tried before none counts as free.
	portTries = 100
)

// freePort returns a free port of the host that the system gives to no listener or connection that asks for any port: the
// port is still free when a test listens on it later.
func freePort(ctx context.Context, host string) (port int, err error) {
	for range portTries {
		port = firstPort + rand.IntN(ports)
		listener, listenErr := new(net.ListenConfig).Listen(ctx, "tcp", fmt.Sprintf("%s:%d", host, port))
		if listenErr == nil {
			return port, listener.Close()
		}
		err = listenErr
	}
	return 0, fmt.Errorf("find a free port: %w", err)
}
