package cluster

import (
	"os"
	"path/filepath"
)

// nodeParts are what all nodes have in common.
type nodeParts struct {
	state    state
	binaries Binaries
	runc     runtimeChoice
	// snapshotter is the containerd snapshotter for image layers.
	snapshotter string
}

// machine returns the machine of a node, with containerd and kubelet.
func (n nodeParts) machine(index int) machine {
	l, name := n.state.layout(), nodeName(index)
	keep := []string{string(l), n.binaries.Kubernetes, n.binaries.containerd, n.binaries.cni}
	if n.runc.folder != "" {
		keep = append(keep, n.runc.folder)
	}
	return machine{
		Name:      name,
		Index:     index,
		Mounts:    privateMounts(l, name),
		Keep:      keep,
		Cgroup:    n.cgroup(name),
		Processes: []Process{n.containerd(name), n.kubelet(name, index)},
	}
}

func (n nodeParts) cgroup(name string) string { return cgroupOf(n.state.Name) + "/" + name }

// cgroupOf returns the control group that holds all nodes of a cluster.
func cgroupOf(cluster string) string { return "/flotilla-" + cluster }

const containerdSocket = "/run/containerd/containerd.sock"

func (n nodeParts) containerd(name string) Process {
	l := n.state.layout()
	return Process{
		Name:   name + "-containerd",
		Path:   filepath.Join(n.binaries.containerd, "containerd"),
		Args:   []string{"--config", l.config(name, "containerd.toml")},
		Env:    []string{"PATH=" + n.binaries.containerd + string(os.PathListSeparator) + os.Getenv("PATH")}, // it looks up its shim
		Log:    l.log(name + "-containerd"),
		Record: l.record(name + "-containerd"),
	}
}

func (n nodeParts) kubelet(name string, index int) Process {
	l := n.state.layout()
	return Process{
		Name: name + "-kubelet",
		Path: filepath.Join(n.binaries.Kubernetes, "kubelet"),
		Args: []string{
			"--config=" + l.config(name, "kubelet.yaml"),
			"--kubeconfig=" + l.config(name, "kubelet.kubeconfig"),
			"--hostname-override=" + name,
			"--node-ip=" + nodeAddress(index), // a kubelet refuses a loopback address
			"--v=2",
		},
		Log:    l.log(name + "-kubelet"),
		Record: l.record(name + "-kubelet"),
		After:  []Probe{{Unix: containerdSocket}, {HTTPS: "https://" + controlPlaneAddress + "/readyz"}},
	}
}

// files returns a node's configuration, by path.
func (n nodeParts) files(index int) (map[string][]byte, error) {
	l, name := n.state.layout(), nodeName(index)
	values := nodeValues{
		Cgroup:      n.cgroup(name),
		PodPrefix:   podPrefix(index),
		DNS:         dnsAddress,
		Registry:    registryAddress(),
		Sandbox:     sandboxImage,
		Socket:      containerdSocket,
		Snapshotter: n.snapshotter,
		CNIBinaries: n.binaries.cni,
		RuncBinary:  n.runc.path,
		CA:          l.pki("ca.crt"),
		Config:      filepath.Dir(l.config(name, "x")),
	}
	files := map[string][]byte{}
	for target, template := range map[string]string{
		"kubelet.yaml":                   "kubelet.yaml",
		"containerd.toml":                "containerd.toml",
		"cni/10-bridge.conflist":         "bridge.conflist",
		"registries/_default/hosts.toml": "hosts.toml",
		"resolv.conf":                    "resolv.conf",
	} {
		data, err := render(template, values)
		if err != nil {
			return nil, err
		}
		files[l.config(name, target)] = data
	}
	return files, nil
}
