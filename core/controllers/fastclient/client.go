package fastclient

import (
	"fmt"

	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/cluster"
)

// NewClient returns a client that reads from the cluster's cache and writes with the user agent, by convention
// "<feature>-manager/<controller>", which identifies the controller in the audit log. It sends each write once, see
// WriteOnce.
func NewClient(c cluster.Cluster, userAgent string) (client.Client, error) {
	config := rest.CopyConfig(c.GetConfig())
	config.UserAgent = userAgent
	WriteOnce(config)
	made, err := client.New(config, client.Options{
		Scheme: c.GetScheme(),
		Mapper: c.GetRESTMapper(),
		Cache:  &client.CacheOptions{Reader: c.GetCache()},
	})
	if err != nil {
		return nil, fmt.Errorf("make the client of %s: %w", userAgent, err)
	}
	return made, nil
}
