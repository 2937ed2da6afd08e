package manager

import (
	"fmt"
	"os"
	"testing"

	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
)

// server is the API server of the integration tests. They skip themselves when there is none.
var server struct {
	environment *envtest.Environment
	config      *rest.Config
}

func TestMain(m *testing.M) { os.Exit(run(m)) }

func run(m *testing.M) int {
	if os.Getenv("KUBEBUILDER_ASSETS") == "" {
		if os.Getenv("CI") == "true" || os.Getenv("FLOTILLA_REQUIRE_ENVTEST") == "1" {
			fmt.Println("KUBEBUILDER_ASSETS has to name the folder of etcd and kube-apiserver")
			return 1
		}
		fmt.Println("Integration tests are skipped: KUBEBUILDER_ASSETS names no folder of etcd and kube-apiserver")
		return m.Run()
	}
	server.environment = &envtest.Environment{}
	config, err := server.environment.Start()
	if err != nil {
		fmt.Printf("start API server: %v\n", err)
		return 1
	}
	server.config = config
	code := m.Run()
	if err := server.environment.Stop(); err != nil {
		fmt.Printf("stop API server: %v\n", err)
		return 1
	}
	return code
}
