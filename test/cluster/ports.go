package cluster

import (
	"fmt"
	"net"
)

// listenLoopback opens a port of the machine's loopback: wanted if it is set, else preferred if it is free, else any.
func listenLoopback(wanted, preferred int) (*net.TCPListener, error) {
	if wanted != 0 {
		listener, err := listenTCP(wanted)
		if err != nil {
			return nil, fmt.Errorf("port %d of the loopback: %w", wanted, err)
		}
		return listener, nil
	}
	if listener, err := listenTCP(preferred); err == nil {
		return listener, nil
	}
	return listenTCP(0)
}

func listenTCP(port int) (*net.TCPListener, error) {
	return net.ListenTCP("tcp4", &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: port})
}

func portOf(listener net.Listener) int { return listener.Addr().(*net.TCPAddr).Port }

// freePorts finds ports for programs that cannot inherit a listener. All are held until the last is found, so that they
// differ.
func freePorts(n int) ([]int, error) {
	ports := make([]int, n)
	for i := range ports {
		listener, err := listenTCP(0)
		if err != nil {
			return nil, fmt.Errorf("find a free port: %w", err)
		}
		defer listener.Close()
		ports[i] = portOf(listener)
	}
	return ports, nil
}
