// Package cluster runs a real Kubernetes on one Linux machine, for tests and experiments. It needs no container engine
// and no virtual machine, and downloads only Go modules (and runc from the distribution, if it is missing).
//
// Options go in: a name, a Kubernetes version, a number of nodes. A Cluster comes out: its kubeconfig, its nodes (which
// can be crashed and booted), its image registry, its logs.
//
// # Shape
//
// Start builds the binaries of a version once into a cache folder, writes all certificates and configuration below a
// state folder, and starts one detached process, the supervisor. All other processes are its children:
//
//	supervisor            the machine's own network; listens on loopback only
//	├─ control-plane      init of its own network, PID, mount, IPC and host name namespace
//	│  ├─ etcd, kube-apiserver, kube-controller-manager, kube-scheduler
//	│  └─ registry, volume-expander (roles of this package's own command)
//	└─ n0, n1, ...        one init each, with namespaces of the same kinds
//	   ├─ containerd
//	   └─ kubelet
//
// The nodes are connected to a bridge in the control plane's network namespace: node i is 10.210.0.(10+i), its pods are
// 10.211.i.0/24, plain routes between them and no address translation. There is no kube-proxy and no DNS: the API
// server is reachable from pods at its Service address 10.96.0.1:443, and it calls webhooks by endpoint address. All
// registry names lead to the cluster's own registry.
//
// The namespaces have no names and exist only as long as their processes. When the supervisor ends, the kernel ends the
// inits, and with each init its processes, mounts and network devices. Only control groups and the state folder must be
// removed.
//
// Where real nodes cannot run, Options.Simulated starts only the control plane, as plain processes on loopback.
//
// The package must never touch the machine's own network beyond listening on loopback, never leave a file outside its
// cache and state folders, and never end a process that it did not start.
package cluster
