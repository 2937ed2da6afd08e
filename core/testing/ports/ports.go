// Package ports finds ports for programs of tests that listen later.
package ports

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net"
)

// reserved has what keeps the ports of this process.
var reserved []net.Listener //nolint:gochecknoglobals // they belong to the process

// Free returns n different ports that nobody listens at, and keeps them for this process. They are none of those
// that Linux gives to connections by default, one of which could have taken it before the manager listens.
func Free(ctx context.Context, n int) ([]int, error) {
	const first, last, attempts = 20000, 32767, 100
	var ports []int
	for range attempts {
		port := first + rand.IntN(last-first+1) //nolint:gosec // it is no secret
		if !reserve(ctx, port) {
			continue
		}
		if ports = append(ports, port); len(ports) == n {
			return ports, nil
		}
	}
	return nil, fmt.Errorf("find %d free ports between %d and %d: tried %d times", n, first, last, attempts)
}

// reserve keeps a port that is free at every address from all other processes, and from the next call in this one: a
// manager may listen there long after. An abstract socket of its name keeps it until this process ends.
func reserve(ctx context.Context, port int) bool {
	var listen net.ListenConfig
	keeper, err := listen.Listen(ctx, "unix", fmt.Sprintf("@flotilla-port-%d", port))
	if err != nil {
		return false
	}
	reserved = append(reserved, keeper)
	listener, err := listen.Listen(ctx, "tcp", fmt.Sprintf(":%d", port))
	return err == nil && listener.Close() == nil
}
