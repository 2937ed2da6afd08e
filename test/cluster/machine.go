package cluster

// machine behaves as one computer: an init process in its own namespaces, and the processes that it keeps running. It
// is a plain value, which the supervisor sends to the standard input of the init.
type machine struct {
	// Name is control-plane or the node's name; it is the host name too.
	Name string
	// Index is the index of the node in the address plan; -1 for the control plane.
	Index int
	// Mounts give the machine private folders at well-known paths, in order.
	Mounts []mount `json:",omitempty"`
	// Keep are folders that stay visible at their own path, even below Mounts.
	Keep []string `json:",omitempty"`
	// Cgroup is the path below the root of every hierarchy; empty for none.
	Cgroup string `json:",omitempty"`
	// Processes run in parallel; each waits for its probes.
	Processes []Process
}

// mount binds a folder of the host to a path of the machine.
type mount struct {
	Source, Target string
	Mode           uint32
	// Volatile folders are empty after each boot.
	Volatile bool
}

const controlPlaneName = "control-plane"

// privateMounts returns the folders of which every machine has its own. All of /var/lib, /var/log and /tmp is replaced,
// so that no mount point needs to be made on the host.
func privateMounts(l layout, name string) []mount {
	return []mount{
		{Source: l.private(name, "run"), Target: "/run", Mode: 0o755, Volatile: true},
		{Source: l.private(name, "var-lib"), Target: "/var/lib", Mode: 0o755},
		{Source: l.private(name, "var-log"), Target: "/var/log", Mode: 0o755},
		{Source: l.private(name, "tmp"), Target: "/tmp", Mode: 0o1777},
		{Source: l.path("volumes"), Target: "/tmp/hostpath_pv", Mode: 0o777}, // shared by all machines
	}
}
