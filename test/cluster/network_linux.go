package cluster

import (
	"context"
	"fmt"
	"net"
	"runtime"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netns"
	"golang.org/x/sys/unix"
)

const bridgeName = "br0"

// network is the control plane's network namespace, with the bridge that connects all nodes.
type network struct {
	namespace netns.NsHandle
	links     *netlink.Handle
}

// makeNetwork sets up the network of the control plane. pid is its init.
func makeNetwork(pid int) (*network, error) {
	n, err := openNetwork(pid)
	if err != nil {
		return nil, err
	}
	if err := n.addBridge(); err != nil {
		n.close()
		return nil, fmt.Errorf("set up the control plane's network: %w", err)
	}
	return n, nil
}

// openNetwork returns the network of the control plane. pid is its init.
func openNetwork(pid int) (*network, error) {
	namespace, err := netns.GetFromPid(pid)
	if err != nil {
		return nil, fmt.Errorf("open the control plane's network namespace: %w", err)
	}
	links, err := netlink.NewHandleAt(namespace)
	if err != nil {
		_ = namespace.Close()
		return nil, fmt.Errorf("talk netlink in the control plane's network namespace: %w", err)
	}
	return &network{namespace: namespace, links: links}, nil
}

func (n *network) close() {
	n.links.Close()
	_ = n.namespace.Close()
}

func (n *network) addBridge() error {
	// A bridge without a fixed MAC address takes that of its lowest port, and would change it whenever a node starts or
	// stops, so that its neighbours would lose it.
	attributes := netlink.NewLinkAttrs()
	attributes.Name = bridgeName
	attributes.HardwareAddr = net.HardwareAddr{0x0a, 0, 10, 210, 0, 1}
	if err := n.links.LinkAdd(&netlink.Bridge{LinkAttrs: attributes}); err != nil {
		return fmt.Errorf("add bridge: %w", err)
	}
	if err := addAddress(n.links, "lo", apiServiceAddress+"/32"); err != nil {
		return err
	}
	if err := addAddress(n.links, bridgeName, fmt.Sprintf("%s/%d", controlPlaneAddress, nodePrefix)); err != nil {
		return err
	}
	_, services, err := net.ParseCIDR(servicePrefix)
	if err != nil {
		return err
	}
	if err := n.links.RouteAdd(&netlink.Route{Dst: services, Type: unix.RTN_UNREACHABLE}); err != nil {
		return fmt.Errorf("reject Service addresses: %w", err)
	}
	return nil
}

// attach connects a node to the bridge and adds the route of its pods. pid is the node's init.
func (n *network) attach(index, pid, nodes int) error {
	namespace, err := netns.GetFromPid(pid)
	if err != nil {
		return fmt.Errorf("open network namespace of node %s: %w", nodeName(index), err)
	}
	defer namespace.Close()
	links, err := netlink.NewHandleAt(namespace)
	if err != nil {
		return fmt.Errorf("talk netlink in node %s: %w", nodeName(index), err)
	}
	defer links.Close()
	if err := n.addCable(index, namespace); err != nil {
		return fmt.Errorf("connect node %s: %w", nodeName(index), err)
	}
	if err := addAddress(links, "lo", ""); err != nil {
		return err
	}
	if err := addAddress(links, "eth0", fmt.Sprintf("%s/%d", nodeAddress(index), nodePrefix)); err != nil {
		return err
	}
	if err := addRoute(links, "0.0.0.0/0", controlPlaneAddress); err != nil {
		return err
	}
	for other := range nodes {
		if other == index {
			continue
		}
		if err := addRoute(links, podPrefix(other), nodeAddress(other)); err != nil {
			return err
		}
	}
	return addRoute(n.links, podPrefix(index), nodeAddress(index))
}

// addCable adds a pair of devices, one end on the bridge, the other in the node.
func (n *network) addCable(index int, node netns.NsHandle) error {
	// The kernel may still be removing the network namespace of the node from before its stop.
	if old, err := n.links.LinkByName(nodeName(index)); err == nil {
		if err := n.links.LinkDel(old); err != nil {
			return fmt.Errorf("remove old device: %w", err)
		}
	}
	bridge, err := n.links.LinkByName(bridgeName)
	if err != nil {
		return fmt.Errorf("find bridge: %w", err)
	}
	attributes := netlink.NewLinkAttrs()
	attributes.Name = nodeName(index)
	attributes.MasterIndex = bridge.Attrs().Index
	cable := &netlink.Veth{
		LinkAttrs:     attributes,
		PeerName:      "eth0",
		PeerNamespace: netlink.NsFd(int(node)),
	}
	if err := n.links.LinkAdd(cable); err != nil {
		return fmt.Errorf("add devices: %w", err)
	}
	return n.links.LinkSetUp(cable)
}

// plug switches the node's end of the bridge on or off.
func (n *network) plug(index int, on bool) error {
	link, err := n.links.LinkByName(nodeName(index))
	if err != nil {
		return fmt.Errorf("find the device of node %s: %w", nodeName(index), err)
	}
	if on {
		return n.links.LinkSetUp(link)
	}
	return n.links.LinkSetDown(link)
}

// addAddress sets the address of a device, if there is one, and enables the device.
func addAddress(links *netlink.Handle, device, address string) error {
	link, err := links.LinkByName(device)
	if err != nil {
		return fmt.Errorf("find device %s: %w", device, err)
	}
	if address != "" {
		parsed, err := netlink.ParseAddr(address)
		if err != nil {
			return err
		}
		if err := links.AddrAdd(link, parsed); err != nil {
			return fmt.Errorf("add address %s: %w", address, err)
		}
	}
	if err := links.LinkSetUp(link); err != nil {
		return fmt.Errorf("switch on device %s: %w", device, err)
	}
	return nil
}

func addRoute(links *netlink.Handle, prefix, via string) error {
	_, destination, err := net.ParseCIDR(prefix)
	if err != nil {
		return err
	}
	if err := links.RouteReplace(&netlink.Route{Dst: destination, Gw: net.ParseIP(via)}); err != nil {
		return fmt.Errorf("route %s via %s: %w", prefix, via, err)
	}
	return nil
}

// dial opens a connection from the control plane's network.
func (n *network) dial(ctx context.Context, address string) (net.Conn, error) {
	return inNamespace(n.namespace, func() (net.Conn, error) {
		var dialer net.Dialer
		return dialer.DialContext(ctx, "tcp", address)
	})
}

// listen opens a listener on the control plane's own network.
func (n *network) listen(ctx context.Context, address string) (net.Listener, error) {
	return inNamespace(n.namespace, func() (net.Listener, error) {
		var config net.ListenConfig
		return config.Listen(ctx, "tcp", address)
	})
}

// inNamespace runs open on a thread that is in the network namespace meanwhile. A socket belongs to the namespace of
// the thread that made it, so it can be used from any thread afterwards. open must use a numeric address: names are
// resolved on other threads.
func inNamespace[T any](namespace netns.NsHandle, open func() (T, error)) (T, error) {
	type result struct {
		value T
		err   error
	}
	done := make(chan result, 1)
	go func() {
		runtime.LockOSThread()
		var r result
		defer func() { done <- r }()
		home, err := netns.Get()
		if err != nil {
			r.err = fmt.Errorf("find the own network namespace: %w", err)
			return
		}
		defer home.Close()
		if r.err = netns.Set(namespace); r.err != nil {
			return
		}
		r.value, r.err = open()
		// A thread that cannot return is never used again: Go ends it with the goroutine.
		if netns.Set(home) == nil {
			runtime.UnlockOSThread()
		}
	}()
	r := <-done
	return r.value, r.err
}

// DialContext opens a TCP connection from inside the cluster's network, in which nodes and pods are reachable by
// address. It needs root.
func (c *Cluster) DialContext(ctx context.Context, address string) (net.Conn, error) {
	status, err := c.Status(ctx)
	if err != nil {
		return nil, err
	}
	namespace, err := netns.GetFromPid(status.Machines[0].PID)
	if err != nil {
		return nil, fmt.Errorf("open the cluster's network namespace: %w", err)
	}
	defer namespace.Close()
	n := network{namespace: namespace}
	return n.dial(ctx, address)
}
