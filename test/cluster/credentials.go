package cluster

import (
	"fmt"
	"time"
)

const administrators = "system:masters"

// writeCredentials writes a new CA with the certificates, keys and kubeconfigs of all components, and the audit policy.
func writeCredentials(s state, ends endpoints, now time.Time) error {
	ca, err := newAuthority(now)
	if err != nil {
		return err
	}
	accounts, err := newServiceAccountKey()
	if err != nil {
		return err
	}
	l := s.layout()
	files := map[string][]byte{}
	files[l.pki("ca.crt")], files[l.pki("ca.key")] = ca.cert, ca.key
	files[l.pki("service-account.crt")], files[l.pki("service-account.key")] = accounts.cert, accounts.key
	files[l.path("audit-policy.yaml")], err = render("audit-policy.yaml", nil)
	if err != nil {
		return err
	}
	for name, id := range map[string]identity{
		"apiserver":      {user: "kube-apiserver", hosts: ends.names()},
		"kubelet-client": {user: "kube-apiserver-kubelet-client", group: administrators},
	} {
		pair, err := ca.issue(id)
		if err != nil {
			return err
		}
		files[l.pki(name+".crt")], files[l.pki(name+".key")] = pair.cert, pair.key
	}
	if err := addKubeconfigs(files, s, ca, ends.server()); err != nil {
		return err
	}
	if !s.Simulated {
		for i := range s.Nodes {
			if err := addNodeCredentials(files, l, ca, i); err != nil {
				return err
			}
		}
	}
	return writeFiles(files)
}

// addKubeconfigs adds the kubeconfigs of the administrator, who uses the machine's loopback, and of the components that
// run beside the API server.
func addKubeconfigs(files map[string][]byte, s state, ca *authority, local string) error {
	outside := "https://" + loopback(s.APIPort)
	for name, who := range map[string]struct {
		identity
		server string
	}{
		"admin":              {identity{user: "admin", group: administrators}, outside},
		"volume-expander":    {identity{user: "volume-expander", group: administrators}, local},
		"controller-manager": {identity{user: "system:kube-controller-manager"}, local},
		"scheduler":          {identity{user: "system:kube-scheduler"}, local},
	} {
		pair, err := ca.issue(who.identity)
		if err != nil {
			return err
		}
		if files[s.layout().kubeconfig(name)], err = kubeconfig(s.Name, name, who.server, ca.cert, pair); err != nil {
			return err
		}
	}
	return nil
}

// addNodeCredentials adds a kubelet's certificate, which it uses both as server and as client.
func addNodeCredentials(files map[string][]byte, l layout, ca *authority, index int) error {
	name := nodeName(index)
	pair, err := ca.issue(identity{
		user:  "system:node:" + name,
		group: "system:nodes",
		hosts: []string{nodeAddress(index), "127.0.0.1", name},
	})
	if err != nil {
		return err
	}
	files[l.config(name, "kubelet.crt")], files[l.config(name, "kubelet.key")] = pair.cert, pair.key
	server := fmt.Sprintf("https://%s:%d", controlPlaneAddress, apiPort)
	files[l.config(name, "kubelet.kubeconfig")], err = kubeconfig(name, name, server, ca.cert, pair)
	return err
}
