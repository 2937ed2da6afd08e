package scale

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
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

// operator is a feature's operator as a process on this machine. Its overlay is installed without the Deployment, it
// uses its own account, and its webhooks are called by URL.
type operator struct {
	process
	binary, log     string
	arguments, env  []string
	health, metrics string // URLs
	command         *exec.Cmd
	ended           chan error
}

// newOperator builds the operator and installs its manifests, but does not start it.
func newOperator(ctx context.Context, c *cluster.Cluster, kube kubernetes.Interface, folder string, o Options) (*operator, error) {
	binary := filepath.Join(folder, o.operator())
	source := "github.com/flotilla-project/flotilla/" + o.Feature + "/cmd/manager"
	if out, err := exec.CommandContext(ctx, "go", "build", "-o", binary, source).CombinedOutput(); err != nil {
		return nil, fmt.Errorf("build the operator: %w: %s", err, out)
	}
	ports, err := freePorts(ctx, 3)
	if err != nil {
		return nil, err
	}
	webhook := net.JoinHostPort("localhost", strconv.Itoa(ports[0]))
	if err := applyDefinitions(ctx, c, features()[o.Feature].needs); err != nil {
		return nil, err
	}
	if err := apply(ctx, c, o.Feature, webhook); err != nil {
		return nil, err
	}
	kubeconfig := filepath.Join(folder, "kubeconfig")
	if err := writeKubeconfig(ctx, c, kube, o.operator(), kubeconfig); err != nil {
		return nil, err
	}
	health, metrics := net.JoinHostPort("127.0.0.1", strconv.Itoa(ports[1])), net.JoinHostPort("127.0.0.1", strconv.Itoa(ports[2]))
	return &operator{
		process: process{name: o.operator()}, binary: binary, log: o.OperatorLog,
		arguments: []string{
			"--kubeconfig=" + kubeconfig, "--metrics-addr=" + metrics, "--metrics-secure=false", "--health-probe-addr=" + health,
			"--enable-pprof=" + strconv.FormatBool(o.PprofAddress != ""), "--pprof-addr=" + o.PprofAddress,
		},
		env:    []string{"POD_NAMESPACE=" + install.Namespace, "WEBHOOK_HOST=" + webhook, "WEBHOOK_PORT=" + strconv.Itoa(ports[0])},
		health: "http://" + health + "/readyz", metrics: "http://" + metrics + "/metrics",
	}, nil
}

// start starts the process and returns when it is ready.
func (o *operator) start(ctx context.Context) error {
	log, err := openLog(o.log)
	if err != nil {
		return err
	}
	defer func() { _ = log.Close() }()
	o.command = exec.CommandContext(context.WithoutCancel(ctx), o.binary, o.arguments...)
	o.command.Env = append(os.Environ(), o.env...)
	o.command.Stdout, o.command.Stderr = log, log
	if err := o.command.Start(); err != nil {
		return fmt.Errorf("start the operator: %w", err)
	}
	o.pid, o.ended = o.command.Process.Pid, make(chan error, 1)
	go func(command *exec.Cmd, ended chan<- error) { ended <- command.Wait() }(o.command, o.ended)
	return await(ctx, "the operator to be ready", func() (bool, error) { return o.ready(ctx) })
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
	code, _, err := get(ctx, o.health)
	return err == nil && code == http.StatusOK, nil // before it listens there is no answer
}

// get returns a page that the operator serves.
func get(ctx context.Context, url string) (code int, text string, err error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return 0, "", fmt.Errorf("ask %s: %w", url, err)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return 0, "", fmt.Errorf("ask %s: %w", url, err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	return response.StatusCode, string(body), err
}

// stop ends the operator with SIGTERM, so that it releases its Lease.
func (o *operator) stop() error { return o.signal(syscall.SIGTERM) }

// kill ends the operator with SIGKILL, so that it releases nothing.
func (o *operator) kill() error { return o.signal(syscall.SIGKILL) }

func (o *operator) signal(with syscall.Signal) error {
	if o == nil || o.command == nil || o.command.Process == nil {
		return nil
	}
	if err := o.command.Process.Signal(with); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("end the operator: %w", err)
	}
	<-o.ended // how it ended says nothing about what was measured
	o.command = nil
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
	return await(ctx, "the CRDs to be served", func() (bool, error) {
		return kubectl(ctx, c, nil, "wait", "--for=condition=Established", "crd", "--all") == nil, nil
	})
}

// applyDefinitions installs the kinds of another feature, and its namespaces with the rights in them, without its programs.
func applyDefinitions(ctx context.Context, c *cluster.Cluster, feature string) error {
	if feature == "" {
		return nil
	}
	manifests, err := install.Manifests(feature)
	if err != nil {
		return err
	}
	objects, err := install.Objects(manifests)
	if err != nil {
		return err
	}
	var list unstructured.UnstructuredList
	list.SetAPIVersion("v1")
	list.SetKind("List")
	for _, o := range objects {
		switch o.GetKind() {
		case "Namespace", "CustomResourceDefinition", "Role", "RoleBinding":
			list.Items = append(list.Items, o)
		}
	}
	text, err := json.Marshal(&list)
	if err != nil {
		return fmt.Errorf("encode the definitions of %s: %w", feature, err)
	}
	if err := kubectl(ctx, c, text, "apply", "--server-side", "--force-conflicts", "-f", "-"); err != nil {
		return fmt.Errorf("apply the definitions of %s: %w", feature, err)
	}
	return nil
}

func kubectl(ctx context.Context, c *cluster.Cluster, input []byte, arguments ...string) error {
	command := exec.CommandContext(ctx, c.Kubectl(), append([]string{"--kubeconfig", c.Kubeconfig()}, arguments...)...)
	command.Stdin = bytes.NewReader(input)
	if out, err := command.CombinedOutput(); err != nil {
		return fmt.Errorf("%w: %s", err, out)
	}
	return nil
}

// asProcess changes an overlay's manifests for an operator that runs as a process: it removes the Deployment, and
// replaces references to the Service by a URL.
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

// writeKubeconfig writes the kubeconfig with which the operator uses the server as its own account.
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

// freePorts returns free ports on loopback.
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

// await polls until ask returns true, at most for the timeout of a run.
func await(ctx context.Context, what string, ask func() (bool, error)) error {
	return awaitEvery(ctx, pollInterval, what, ask)
}

// awaitEvery is await with another interval, for polls that cost more.
func awaitEvery(ctx context.Context, interval time.Duration, what string, ask func() (bool, error)) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	ticker := time.NewTicker(interval)
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
