package cloneset

import (
	"context"
	"fmt"
	"os"
	"testing"

	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/flotilla-project/flotilla/cloneset/api/v1alpha1"
	"github.com/flotilla-project/flotilla/cloneset/api/v1beta1"

	"github.com/flotilla-project/flotilla/test/cluster"
	"github.com/flotilla-project/flotilla/test/install"
	"github.com/flotilla-project/flotilla/test/story"
)

// clusterVariable names the running cluster that the stories are told on.
const clusterVariable = "FLOTILLA_E2E_CLUSTER"

var (
	world   story.World
	machine *cluster.Cluster
)

func TestMain(m *testing.M) {
	if os.Getenv(clusterVariable) == "" {
		fmt.Printf("e2e: %s names no running cluster; `make test-e2e` starts one\n", clusterVariable)
		if os.Getenv("CI") != "" {
			os.Exit(1)
		}
		return
	}
	if err := setUp(context.Background()); err != nil {
		fmt.Fprintln(os.Stderr, "e2e:", err)
		os.Exit(1)
	}
	os.Exit(m.Run())
}

func setUp(ctx context.Context) error {
	c, err := cluster.Attach(ctx, cluster.Options{Name: os.Getenv(clusterVariable)})
	if err != nil {
		return fmt.Errorf("attach to the cluster: %w", err)
	}
	machine = c
	if err := install.Apps(ctx, c, os.Stdout); err != nil {
		return err
	}
	if err := install.Feature(ctx, c, "cloneset", os.Stdout); err != nil {
		return err
	}
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, v1beta1.AddToScheme, v1alpha1.AddToScheme} {
		if err := add(scheme); err != nil {
			return err
		}
	}
	api, err := client.NewWithWatch(c.RESTConfig(), client.Options{Scheme: scheme})
	world = story.World{Client: api, KubectlPath: c.Kubectl(), Kubeconfig: c.Kubeconfig()}
	return err
}
