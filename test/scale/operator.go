package scale

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/clientcmd/api"

	"github.com/flotilla-project/flotilla/test/cluster"
	"github.com/flotilla-project/flotilla/test/install"
)

const (
	// tokenSeconds is longer than any run.
	tokenSeconds = 24 * 60 * 60
)

// operator is a feature's operator as a process of this machine: from its overlay, with its own
// account, but for the Deployment, and with webhooks that are reached by URL.
type operator struct {
	process
	command *exec.Cmd
	ended   chan error
	health  string
}

func startOperator(ctx context.Context, c *cluster.Cluster, kube kubernetes.Interface, folder string, o Options) (*operator, error) {
	binary := filepath.Join(folder, o.operator())
	source := "github.com/flotilla-project/flotilla/" + o.Feature + "/cmd/manager"
	if out, err := exec.CommandContext(ctx, "go", "build", "-o", binary, source).CombinedOutput(); err != nil {
		return nil, fmt.Errorf("build the operator: %w: %s", err, out)
	}
	ports, err := freePorts(ctx, 2)
	if err != nil {
		return nil, err
	}
	webhook := net.JoinHostPort("localhost", strconv.Itoa(ports[0]))
	if err := apply(ctx, c, o.Feature, webhook); err != nil {
		return nil, err
	}
	kubeconfig := filepath.Join(folder, "kubeconfig")
	if err := writeKubeconfig(ctx, c, kube, o.operator(), kubeconfig); err != nil {
		return nil, err
	}
	health := net.JoinHostPort("127.0.0.1", strconv.Itoa(ports[1]))
	command := exec.CommandContext(context.WithoutCancel(ctx), binary, "--kubeconfig="+kubeconfig, "--metrics-addr=0", "--health-probe-addr="+health,
		"--enable-pprof="+strconv.FormatBool(o.PprofAddress != ""), "--pprof-addr="+o.PprofAddress)
	command.Env = append(os.Environ(), "POD_NAMESPACE="+install.Namespace, "WEBHOOK_HOST="+webhook, "WEBHOOK_PORT="+strconv.Itoa(ports[0]))
	log, err := openLog(o.OperatorLog)
	if err != nil {
		return nil, err
	}
	defer func() { _ = log.Close() }()
	command.Stdout, command.Stderr = log, log
	if err := command.Start(); err != nil {
		return nil, fmt.Errorf("start the operator: %w", err)
	}
	started := &operator{process{o.operator(), command.Process.Pid}, command, make(chan error, 1), "http://" + health + "/readyz"}
	go func() { started.ended <- command.Wait() }()
	if err := await(ctx, "the operator to be ready", func() (bool, error) { return started.ready(ctx) }); err != nil {
		return nil, errors.Join(err, started.stop())
	}
	return started, nil
}

func openLog(file string) (*os.File, error) {
	if file == "" {
		file = os.DevNull
	}
	return os.OpenFile(file, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
}

func (o *operator) ready(ctx context.Context) (bool, error) {
	select {
	case err := <-o.ended:
		o.ended <- err
		return false, fmt.Errorf("the operator has ended: %w", err)
	default:
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, o.health, nil)
	if err != nil {
		return false, fmt.Errorf("ask whether the operator is ready: %w", err)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return false, nil //nolint:nilerr // it does not listen yet
	}
	return response.StatusCode == http.StatusOK, response.Body.Close()
}

// stop lets the operator release its lease and end.
func (o *operator) stop() error {
	if err := o.command.Process.Signal(syscall.SIGTERM); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("end the operator: %w", err)
	}
	<-o.ended // how it ended says nothing about what was measured
	return nil
}

// apply installs the operator's overlay.
func apply(ctx context.Context, c *cluster.Cluster, feature, webhook string) error {
	manifests, err := install.Manifests(feature)
	if err != nil {
		return err
	}
	objects, err := asProcess(manifests, webhook)
	if err != nil {
		return err
	}
	if err := kubectl(ctx, c, objects, "apply", "--server-side", "--force-conflicts", "-f", "-"); err != nil {
		return fmt.Errorf("apply the overlay: %w", err)
	}
	if err := kubectl(ctx, c, nil, "wait", "--for=condition=established", "crd", "--all"); err != nil {
		return fmt.Errorf("wait for the CRDs: %w", err)
	}
	return await(ctx, "the CRDs to be served", func() (bool, error) {
		return kubectl(ctx, c, nil, "get", feature+"s.apps.kruise.io") == nil, nil
	})
}

func kubectl(ctx context.Context, c *cluster.Cluster, input []byte, arguments ...string) error {
	command := exec.CommandContext(ctx, c.Kubectl(), append([]string{"--kubeconfig", c.Kubeconfig()}, arguments...)...)
	command.Stdin = bytes.NewReader(input)
	if out, err := command.CombinedOutput(); err != nil {
		return fmt.Errorf("%w: %s", err, out)
	}
	return nil
}

// asProcess changes an overlay's manifests for an operator that runs as a process: there is no
// Deployment, and what names the Service names a URL.
func asProcess(manifests []byte, webhook string) ([]byte, error) {
	objects, err := install.Objects(manifests)
	if err != nil {
		return nil, err
	}
	var list unstructured.UnstructuredList
	list.SetAPIVersion("v1")
	list.SetKind("List")
	for _, o := range objects {
		if o.GetKind() == "Deployment" || o.GetKind() == "Service" {
			continue
		}
		withURL(o.Object, webhook)
		list.Items = append(list.Items, o)
	}
	return json.Marshal(&list)
}

// withURL replaces the service in every clientConfig below a value.
func withURL(value any, webhook string) {
	switch value := value.(type) {
	case []any:
		for _, item := range value {
			withURL(item, webhook)
		}
	case map[string]any:
		if config, ok := value["clientConfig"].(map[string]any); ok {
			if service, ok := config["service"].(map[string]any); ok {
				config["url"] = fmt.Sprintf("https://%s%v", webhook, service["path"])
				delete(config, "service")
			}
		}
		for _, field := range value {
			withURL(field, webhook)
		}
	}
}

// writeKubeconfig writes the file by which the operator reaches the server as its own account.
func writeKubeconfig(ctx context.Context, c *cluster.Cluster, kube kubernetes.Interface, account, file string) error {
	token, err := kube.CoreV1().ServiceAccounts(install.Namespace).CreateToken(ctx, account, &authenticationv1.TokenRequest{
		Spec: authenticationv1.TokenRequestSpec{ExpirationSeconds: new(int64(tokenSeconds))},
	}, metav1.CreateOptions{})
	if err != nil {
		return fmt.Errorf("make a token for the operator: %w", err)
	}
	server := c.RESTConfig()
	config := api.NewConfig()
	config.Clusters["cluster"] = &api.Cluster{
		Server: server.Host, CertificateAuthority: server.CAFile, CertificateAuthorityData: server.CAData,
	}
	config.AuthInfos["operator"] = &api.AuthInfo{Token: token.Status.Token}
	config.Contexts["operator"] = &api.Context{Cluster: "cluster", AuthInfo: "operator"}
	config.CurrentContext = "operator"
	return clientcmd.WriteToFile(*config, file)
}

// freePorts are ports of the loopback that nobody listens on now.
func freePorts(ctx context.Context, n int) ([]int, error) {
	var ports []int
	for range n {
		listener, err := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0")
		if err != nil {
			return nil, fmt.Errorf("find a free port: %w", err)
		}
		defer listener.Close() // only now, so that all are different
		ports = append(ports, listener.Addr().(*net.TCPAddr).Port)
	}
	return ports, nil
}

// await asks again and again until the answer is yes, at most for the patience of a run.
func await(ctx context.Context, what string, ask func() (bool, error)) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	ticker := time.NewTicker(pollInterval)
	defer ticker.Stop()
	for {
		yes, err := ask()
		if yes {
			return nil
		}
		if err != nil {
			return fmt.Errorf("wait for %s: %w", what, err)
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("wait for %s: %w", what, ctx.Err())
		case <-ticker.C:
		}
	}
}
