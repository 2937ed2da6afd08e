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

// assets is the folder of etcd and kube-apiserver, and whether it is an error that there is none.
func assets() (folder string, required bool) {
	return os.Getenv("KUBEBUILDER_ASSETS"), os.Getenv("CI") == "true" || os.Getenv("FLOTILLA_REQUIRE_ENVTEST") == "1"
}

// needServer skips a test when there is no API server. It looks at the environment once more, because cached
// test results depend only on what tests themselves have read.
func needServer(t *testing.T) {
	t.Helper()
	if folder, _ := assets(); folder == "" {
		t.Skip("there is no API server: KUBEBUILDER_ASSETS names no folder of etcd and kube-apiserver")
	}
}

func run(m *testing.M) int {
	folder, required := assets()
	if folder == "" && required {
		fmt.Println("KUBEBUILDER_ASSETS has to name the folder of etcd and kube-apiserver")
		return 1
	}
	if folder == "" {
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
