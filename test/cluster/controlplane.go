package cluster

import (
	"fmt"
	"path/filepath"
	"strings"
)

// endpoints are the addresses on which the parts of a control plane listen.
type endpoints struct {
	etcd, etcdPeer string // host:port
	apiBind        string // address to listen on
	apiAdvertise   string
	apiPort        int
}

// server returns the API server's address for processes on the same machine.
func (e endpoints) server() string { return fmt.Sprintf("https://127.0.0.1:%d", e.apiPort) }

func realEndpoints() endpoints {
	return endpoints{
		etcd:         "127.0.0.1:2379",
		etcdPeer:     "127.0.0.1:2380",
		apiBind:      "0.0.0.0",
		apiAdvertise: controlPlaneAddress,
		apiPort:      apiPort,
	}
}

// controlPlane describes the processes of one control plane.
type controlPlane struct {
	state     state
	endpoints endpoints
}

// machine returns the machine of the control plane, with registry and volumes.
func (cp controlPlane) machine() machine {
	l := cp.state.layout()
	processes := cp.processes()
	processes = append(processes, cp.registry(), cp.volumeExpander())
	return machine{
		Name:      controlPlaneName,
		Index:     -1,
		Mounts:    privateMounts(l, controlPlaneName),
		Keep:      []string{string(l), cp.state.Binaries},
		Processes: processes,
	}
}

// processes returns the processes that every control plane has.
func (cp controlPlane) processes() []Process {
	return []Process{cp.etcd(), cp.apiServer(), cp.controllerManager(), cp.scheduler()}
}

func (cp controlPlane) process(name string, after []Probe, args ...string) Process {
	l := cp.state.layout()
	return Process{
		Name:   name,
		Path:   filepath.Join(cp.state.Binaries, name),
		Args:   args,
		Log:    l.log(name),
		Record: l.record(name),
		After:  after,
	}
}

func (cp controlPlane) ready() []Probe {
	return []Probe{{HTTPS: cp.endpoints.server() + "/readyz"}}
}

func (cp controlPlane) etcd() Process {
	client := "http://" + cp.endpoints.etcd
	peer := "http://" + cp.endpoints.etcdPeer
	return cp.process("etcd", nil,
		"--data-dir="+cp.state.layout().path("etcd"),
		"--unsafe-no-fsync", // the data need not survive the machine
		"--log-level=warn",
		"--listen-client-urls="+client, "--advertise-client-urls="+client,
		"--listen-peer-urls="+peer, "--initial-advertise-peer-urls="+peer, "--initial-cluster=default="+peer,
		"--quota-backend-bytes=4294967296")
}

func (cp controlPlane) apiServer() Process {
	l := cp.state.layout()
	return cp.process("kube-apiserver", []Probe{{TCP: cp.endpoints.etcd}},
		"--etcd-servers=http://"+cp.endpoints.etcd,
		"--bind-address="+cp.endpoints.apiBind,
		"--advertise-address="+cp.endpoints.apiAdvertise,
		fmt.Sprintf("--secure-port=%d", cp.endpoints.apiPort),
		"--service-cluster-ip-range="+servicePrefix,
		// Webhooks and aggregated APIs are called by endpoint address: the control plane has no kube-proxy for Service
		// addresses.
		"--enable-aggregator-routing=true",
		"--client-ca-file="+l.pki("ca.crt"),
		"--tls-cert-file="+l.pki("apiserver.crt"), "--tls-private-key-file="+l.pki("apiserver.key"),
		"--service-account-key-file="+l.pki("service-account.crt"),
		"--service-account-signing-key-file="+l.pki("service-account.key"),
		"--service-account-issuer=https://kubernetes.default.svc",
		"--authorization-mode=Node,RBAC",
		"--enable-admission-plugins=NodeRestriction",
		"--allow-privileged=true",
		"--kubelet-client-certificate="+l.pki("kubelet-client.crt"),
		"--kubelet-client-key="+l.pki("kubelet-client.key"),
		"--kubelet-certificate-authority="+l.pki("ca.crt"),
		"--kubelet-preferred-address-types=InternalIP",
		"--audit-policy-file="+l.path("audit-policy.yaml"),
		"--audit-log-path="+l.path("audit.log"),
		"--audit-log-maxsize=1000000", // in megabytes: one file, so that writes can be counted; with 0 a new one begins after 100
		"--max-requests-inflight=2000", "--max-mutating-requests-inflight=1000")
}

func (cp controlPlane) controllerManager() Process {
	l := cp.state.layout()
	args := []string{
		"--kubeconfig=" + l.kubeconfig("controller-manager"),
		"--service-account-private-key-file=" + l.pki("service-account.key"),
		"--root-ca-file=" + l.pki("ca.crt"),
		"--cluster-signing-cert-file=" + l.pki("ca.crt"), "--cluster-signing-key-file=" + l.pki("ca.key"),
		"--use-service-account-credentials=true",
		"--leader-elect=false",
		"--kube-api-qps=500", "--kube-api-burst=1000",
		"--flex-volume-plugin-dir=" + l.path("flex-volumes"), // the default is a folder of the host's
	}
	if cp.state.Simulated {
		args = append(args, "--secure-port=0")
	} else {
		args = append(args, "--enable-hostpath-provisioner=true")
	}
	if grace := cp.state.NodeGrace; grace > 0 {
		args = append(args, "--node-monitor-grace-period="+grace.String())
	}
	return cp.process("kube-controller-manager", cp.ready(), args...)
}

func (cp controlPlane) scheduler() Process {
	args := []string{
		"--kubeconfig=" + cp.state.layout().kubeconfig("scheduler"),
		"--leader-elect=false", "--kube-api-qps=500", "--kube-api-burst=1000",
	}
	if cp.state.Simulated {
		args = append(args, "--secure-port=0")
	}
	return cp.process("kube-scheduler", cp.ready(), args...)
}

func (cp controlPlane) registry() Process {
	l := cp.state.layout()
	return Process{
		Name:   "registry",
		Path:   l.command(),
		Log:    l.log("registry"),
		Record: l.record("registry"),
		Args:   []string{roleRegistry, fmt.Sprintf("0.0.0.0:%d", registryPort), l.path("registry")},
	}
}

func (cp controlPlane) volumeExpander() Process {
	l := cp.state.layout()
	return Process{
		Name:   "volume-expander",
		Path:   l.command(),
		Log:    l.log("volume-expander"),
		Record: l.record("volume-expander"),
		Args:   []string{roleVolumeExpander, l.kubeconfig("volume-expander")},
		After:  cp.ready(),
	}
}

// names returns the host names that the API server's certificate is valid for.
func (e endpoints) names() []string {
	names := []string{"127.0.0.1", "localhost", e.apiAdvertise, apiServiceAddress}
	for _, levels := range []int{1, 2, 3, 5} {
		full := strings.Split("kubernetes.default.svc.cluster.local", ".")
		names = append(names, strings.Join(full[:levels], "."))
	}
	return names
}
