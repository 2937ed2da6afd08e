// Package cluster runs a real Kubernetes on one Linux machine, for tests and for trying things out: no container
// engine, no virtual machine, nothing downloaded but Go modules (and runc from the distribution, where it is missing).
//
// What goes in are Options: a name, a Kubernetes version, a number of nodes. What comes out is a Cluster: its
// kubeconfig, its nodes (which can be crashed and booted), its image registry, its logs.
//
// # Shape
//
// Start builds the binaries once per version into a cache folder, writes all certificates and configuration below a
// state folder, and starts one detached process, the supervisor. Everything else is a child of it:
//
//	supervisor            the machine's own network; listens on loopback only
//	├─ control-plane      init of its own network, PID, mount, IPC and host name namespace
//	│  ├─ etcd, kube-apiserver, kube-controller-manager, kube-scheduler
//	│  └─ registry, volume-expander (roles of this package's own command)
//	└─ n0, n1, ...        one init each, with namespaces of the same kinds
//	   ├─ containerd
//	   └─ kubelet
//
// The nodes hang on a bridge in the control plane's network namespace: node i is 10.210.0.(10+i), its pods are
// 10.211.i.0/24, plain routes between them and no address translation. There is no kube-proxy and no DNS: the API
// server is reachable from pods at its Service address 10.96.0.1:443, and it dials webhooks by endpoint address itself.
// Every registry name is answered by the cluster's own registry.
//
// Namespaces have no names, and belong to processes alone: when the supervisor ends, the kernel ends the inits, and
// with each init go its processes, mounts and network devices. Only control groups and the state folder are left to
// remove.
//
// Where real nodes cannot run, Options.Simulated starts the control plane alone, as plain processes on loopback.
//
// The package must never touch the machine's own network beyond listening on loopback, never leave a file outside its
// cache and state folders, and never end a process that it did not start.
package cluster
