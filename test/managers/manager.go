package managers

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/flotilla-project/flotilla/core/testing/ports"
	"github.com/flotilla-project/flotilla/kustomize/release/images"

	"github.com/flotilla-project/flotilla/test/cluster"
	"github.com/flotilla-project/flotilla/test/install"
)

// tokenSeconds is longer than any test.
const tokenSeconds = 24 * 60 * 60

// Options say which manager to run, and where.
type Options struct {
	// Cluster is the cluster whose API server it uses.
	Cluster *cluster.Cluster
	// Client is that of an administrator.
	Client client.Client
	// Feature is the feature, such as "cloneset".
	Feature string
	// Components are added to the overlay: folders in the feature's config, such as "sidecarterminator". Of what they change in the
	// Deployment, the process needs Arguments.
	Components []string
	// Root is the work tree from which the manager is built and whose manifests are applied. Default: this one.
	Root string
	// Binary is the manager, where it was built before. Default: built from Root.
	Binary string
	// Folder is for the kubeconfig and the log.
	Folder string
	// Log is the file of the log, to which it is appended. Default: one in Folder.
	Log string
	// Arguments are added to those of the process.
	Arguments []string
}

// Manager is the manager of a feature as a process.
type Manager struct {
	Options
	// Objects are those of its manifests, in their order, without Deployment and Service.
	Objects []unstructured.Unstructured
	// Metrics is the URL of its metrics.
	Metrics string

	health         string
	arguments, env []string
	command        *exec.Cmd
	ended          chan error
}

// Install builds the manager and applies the manifests of its feature, but does not start it.
func Install(ctx context.Context, o Options) (*Manager, error) {
	if o.Binary == "" {
		var err error
		if o.Binary, err = images.Program(ctx, images.Options{Root: o.Root}, o.Feature, "manager"); err != nil {
			return nil, fmt.Errorf("build the manager of %s: %w", o.Feature, err)
		}
	}
	free, err := ports.Free(ctx, 3)
	if err != nil {
		return nil, err
	}
	o.Log = cmp.Or(o.Log, filepath.Join(o.Folder, o.Feature+".log"))
	m := &Manager{Options: o}
	if m.Objects, err = manifests(o.Root, o.Feature, free[0], o.Components...); err != nil {
		return nil, err
	}
	if err := apply(ctx, o.Client, m.Objects); err != nil {
		return nil, fmt.Errorf("install %s: %w", o.Feature, err)
	}
	kubeconfig := filepath.Join(o.Folder, o.Feature+".kubeconfig")
	if err := m.writeKubeconfig(ctx, kubeconfig); err != nil {
		return nil, fmt.Errorf("give %s an account: %w", o.Feature, err)
	}
	health := net.JoinHostPort("127.0.0.1", strconv.Itoa(free[1]))
	metrics := net.JoinHostPort("127.0.0.1", strconv.Itoa(free[2]))
	m.health = "http://" + health + "/readyz"
	m.Metrics = "http://" + metrics + "/metrics"
	m.arguments = append([]string{
		"--kubeconfig=" + kubeconfig, "--metrics-addr=" + metrics, "--metrics-secure=false", "--health-probe-addr=" + health,
		"--enable-pprof=false",
	}, o.Arguments...)
	m.env = []string{
		"POD_NAMESPACE=" + install.Namespace, "WEBHOOK_HOST=" + net.JoinHostPort("localhost", strconv.Itoa(free[0])),
		"WEBHOOK_PORT=" + strconv.Itoa(free[0]),
	}
	return m, nil
}

// Start starts the process and returns when it is ready.
func (m *Manager) Start(ctx context.Context) error {
	log, err := os.OpenFile(m.Log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return fmt.Errorf("open the log of %s: %w", m.Feature, err)
	}
	defer func() { _ = log.Close() }()
	m.command = exec.CommandContext(context.WithoutCancel(ctx), m.Binary, m.arguments...)
	m.command.Env = append(inherited(), m.env...)
	m.command.Stdout, m.command.Stderr = log, log
	if err := m.command.Start(); err != nil {
		m.command = nil
		return fmt.Errorf("start the manager of %s: %w", m.Feature, err)
	}
	m.ended = make(chan error, 1)
	go func(command *exec.Cmd, ended chan<- error) { ended <- command.Wait() }(m.command, m.ended)
	return await(ctx, "the manager of "+m.Feature, m.ready)
}

// inherited is the environment of the tests without the settings of their own Go runtime: a manager runs as it is shipped.
func inherited() []string {
	return slices.DeleteFunc(os.Environ(), func(variable string) bool {
		name, _, _ := strings.Cut(variable, "=")
		return name == "GOGC" || name == "GOMEMLIMIT"
	})
}

func (m *Manager) ready(ctx context.Context) (bool, error) {
	select {
	case err := <-m.ended:
		m.ended <- err
		return false, fmt.Errorf("it has ended: %w\n%s", err, m.lastLines())
	default:
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, m.health, nil)
	if err != nil {
		return false, fmt.Errorf("ask %s: %w", m.health, err)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return false, nil // before it listens there is no answer
	}
	defer response.Body.Close()
	return response.StatusCode == http.StatusOK, nil
}

// PID is the process ID of the manager that runs.
func (m *Manager) PID() int { return m.command.Process.Pid }

// Stop ends the process with SIGTERM, so that it releases its Lease.
func (m *Manager) Stop() error { return m.signal(syscall.SIGTERM) }

// Kill ends the process with SIGKILL, so that it releases nothing.
func (m *Manager) Kill() error { return m.signal(syscall.SIGKILL) }

func (m *Manager) signal(with syscall.Signal) error {
	if m == nil || m.command == nil {
		return nil
	}
	if err := m.command.Process.Signal(with); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("end the manager of %s: %w", m.Feature, err)
	}
	ended := <-m.ended
	m.command = nil
	if with == syscall.SIGTERM && ended != nil {
		return fmt.Errorf("the manager of %s: %w", m.Feature, ended)
	}
	return nil
}

// Uninstall deletes the objects of the manifests for which wanted returns true, and waits until they are gone. The
// namespace stays: all features share it.
func (m *Manager) Uninstall(ctx context.Context, wanted func(unstructured.Unstructured) bool) error {
	var chosen []unstructured.Unstructured
	for _, o := range m.Objects {
		if o.GetKind() != "Namespace" && wanted(o) {
			chosen = append(chosen, o)
		}
	}
	return remove(ctx, m.Client, chosen)
}

// IsDefinition reports whether the object is a CustomResourceDefinition.
func IsDefinition(o unstructured.Unstructured) bool { return o.GetKind() == definition }

// IsWebhook reports whether the object is a configuration of webhooks.
func IsWebhook(o unstructured.Unstructured) bool {
	return o.GetKind() == "MutatingWebhookConfiguration" || o.GetKind() == "ValidatingWebhookConfiguration"
}

// writeKubeconfig writes the kubeconfig with which the manager uses the server as its own account.
func (m *Manager) writeKubeconfig(ctx context.Context, file string) error {
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: install.Namespace, Name: m.Feature + "-manager"}}
	token := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{ExpirationSeconds: new(int64(tokenSeconds))}}
	if err := m.Client.SubResource("token").Create(ctx, account, token); err != nil {
		return fmt.Errorf("make a token: %w", err)
	}
	server := m.Cluster.RESTConfig()
	config := api.NewConfig()
	config.Clusters["cluster"] = &api.Cluster{
		Server:                   server.Host,
		CertificateAuthority:     server.CAFile,
		CertificateAuthorityData: server.CAData,
	}
	config.AuthInfos["manager"] = &api.AuthInfo{Token: token.Status.Token}
	config.Contexts["manager"] = &api.Context{Cluster: "cluster", AuthInfo: "manager"}
	config.CurrentContext = "manager"
	return clientcmd.WriteToFile(*config, file)
}
