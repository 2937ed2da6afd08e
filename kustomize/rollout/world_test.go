package rollout_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	"github.com/flotilla-project/flotilla/kustomize/cli"
	"github.com/flotilla-project/flotilla/kustomize/drain"
	"github.com/flotilla-project/flotilla/kustomize/explain"
	"github.com/flotilla-project/flotilla/kustomize/rollout"
	"github.com/flotilla-project/flotilla/kustomize/workload"
)

const assets = "KUBEBUILDER_ASSETS"

// kubeconfig is the file by which commands reach the API server of the package; empty without one.
var kubeconfig string

func TestMain(m *testing.M) { os.Exit(run(m)) }

func run(m *testing.M) int {
	if os.Getenv(assets) == "" {
		return m.Run()
	}
	folder, err := os.MkdirTemp("", "rollout")
	if err != nil {
		fmt.Fprintln(os.Stderr, "make a folder:", err)
		return 1
	}
	defer os.RemoveAll(folder)
	repository := filepath.Join("..", "..")
	environment := &envtest.Environment{ErrorIfCRDPathMissing: true, ControlPlaneStartTimeout: 5 * time.Minute}
	environment.CRDInstallOptions.MaxTime = 5 * time.Minute
	for _, feature := range []string{"cloneset", "statefulset", "daemonset"} {
		environment.CRDDirectoryPaths = append(environment.CRDDirectoryPaths, filepath.Join(repository, feature, "config", "crd"))
	}
	config, err := environment.Start()
	if err != nil {
		fmt.Fprintln(os.Stderr, "start the control plane:", err)
		return 1
	}
	defer func() { _ = environment.Stop() }()
	admin, err := environment.AddUser(envtest.User{Name: "admin", Groups: []string{"system:masters"}}, config)
	if err != nil {
		fmt.Fprintln(os.Stderr, "add a user:", err)
		return 1
	}
	text, err := admin.KubeConfig()
	if err != nil {
		fmt.Fprintln(os.Stderr, "make a kubeconfig:", err)
		return 1
	}
	kubeconfig = filepath.Join(folder, "kubeconfig")
	if err := os.WriteFile(kubeconfig, text, 0o600); err != nil {
		fmt.Fprintln(os.Stderr, "write the kubeconfig:", err)
		return 1
	}
	return m.Run()
}

// world is a namespace in which a test plays the operator.
type world struct {
	t      *testing.T
	flags  *genericclioptions.ConfigFlags
	client *workload.Client
}

func newWorld(t *testing.T) *world {
	t.Helper()
	switch {
	case kubeconfig != "":
	case os.Getenv("CI") != "":
		t.Fatal(assets + " does not name the folder of etcd and kube-apiserver")
	default:
		t.Skip(assets + " does not name the folder of etcd and kube-apiserver")
	}
	admin, err := workload.Connect(flagsFor("default"))
	require.NoError(t, err)
	namespace, err := admin.Core.CoreV1().Namespaces().Create(t.Context(),
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "rollout-"}}, metav1.CreateOptions{})
	require.NoError(t, err)
	flags := flagsFor(namespace.Name)
	client, err := workload.Connect(flags)
	require.NoError(t, err)
	return &world{t: t, flags: flags, client: client}
}

func flagsFor(namespace string) *genericclioptions.ConfigFlags {
	flags := genericclioptions.NewConfigFlags(true)
	flags.KubeConfig, flags.Namespace = &kubeconfig, &namespace
	return flags
}

// call runs flotilla with the arguments, as far as this package has commands.
func (w *world) call(args ...string) (stdout, stderr string, code cli.Code) {
	w.t.Helper()
	var out bytes.Buffer
	stderr, code = w.callTo(w.t.Context(), &out, args...)
	return out.String(), stderr, code
}

func (w *world) callTo(ctx context.Context, out io.Writer, args ...string) (stderr string, code cli.Code) {
	w.t.Helper()
	var errOut bytes.Buffer
	streams := genericiooptions.IOStreams{In: &bytes.Buffer{}, Out: out, ErrOut: &errOut}
	root := &cobra.Command{Use: "flotilla"}
	root.SetOut(out)
	root.SetErr(&errOut)
	root.AddCommand(rollout.NewCommand(w.flags, streams), explain.NewCommand(w.flags, streams), drain.NewCommand(w.flags, streams))
	root.SetArgs(args)
	code = cli.Run(ctx, root)
	return errOut.String(), code
}

// listener is output that does something when it hears a text.
type listener struct {
	bytes.Buffer
	text string
	then func()
}

func (l *listener) Write(p []byte) (int, error) {
	n, err := l.Buffer.Write(p)
	if strings.Contains(l.String(), l.text) {
		l.then()
	}
	return n, err
}

// create makes a workload of two pods whose strategy is given as JSON, and returns it.
func (w *world) create(kind workload.Kind, strategy string) *unstructured.Unstructured {
	w.t.Helper()
	text := fmt.Sprintf(`{"apiVersion": "apps.kruise.io/v1beta1", "kind": %q, "metadata": {"name": "web"}, "spec": {
		"selector": {"matchLabels": {"app": "web"}}, "updateStrategy": %s,
		"template": {"metadata": {"labels": {"app": "web"}}, "spec": {"containers": [{"name": "main", "image": "app:2"}]}}}}`,
		kind.Name, strategy)
	object := &unstructured.Unstructured{}
	require.NoError(w.t, object.UnmarshalJSON([]byte(text)))
	if kind.Name != "DaemonSet" {
		require.NoError(w.t, unstructured.SetNestedField(object.Object, int64(2), "spec", "replicas"))
	}
	object, err := w.client.Dynamic.Resource(kind.In("v1beta1")).Namespace(w.client.Namespace).Create(w.t.Context(), object, metav1.CreateOptions{})
	require.NoError(w.t, err)
	return object
}

// report writes a status with that many updated pods, as an operator of the kind would that has seen the spec.
func (w *world) report(kind workload.Kind, updated int, ready string) {
	w.t.Helper()
	resource := w.client.Dynamic.Resource(kind.In("v1beta1")).Namespace(w.client.Namespace)
	now, err := resource.Get(w.t.Context(), "web", metav1.GetOptions{})
	require.NoError(w.t, err)
	status := fmt.Sprintf(`{"status": {"observedGeneration": %d, "replicas": 2, "readyReplicas": 2, "availableReplicas": 2,
		"updatedReplicas": %[2]d, "updatedReadyReplicas": %[2]d, "updateRevision": "web-b", "currentRevision": "web-a",
		"conditions": [{"type": "Ready", "status": %[3]q, "reason": "MaxUnavailable", "message": "web-x is awaited"}]}}`, now.GetGeneration(), updated, ready)
	if kind.Name == "DaemonSet" {
		status = fmt.Sprintf(`{"status": {"observedGeneration": %d, "desiredNumberScheduled": 2, "currentNumberScheduled": 2,
			"numberMisscheduled": 0, "numberReady": 2, "numberAvailable": 2, "updatedNumberScheduled": %d, "updateRevision": "b",
			"conditions": [{"type": "Ready", "status": %q, "reason": "MaxUnavailable", "message": "web-x is awaited"}]}}`, now.GetGeneration(), updated, ready)
	}
	_, err = resource.Patch(w.t.Context(), "web", types.MergePatchType, []byte(status), metav1.PatchOptions{}, "status")
	require.NoError(w.t, err)
}

// remember makes a revision of the workload with an image, as operators write them.
func (w *world) remember(owner *unstructured.Unstructured, name string, number int64, image string) {
	w.t.Helper()
	data := fmt.Sprintf(`{"spec": {"template": {"$patch": "replace", "metadata": {"creationTimestamp": null, "labels": {"app": "web"},
		"annotations": {"kubernetes.io/change-cause": "to %s"}}, "spec": {"containers": [{"name": "main", "image": %[1]q, "resources": {}}]}}}}`, image)
	_, err := w.client.Core.AppsV1().ControllerRevisions(w.client.Namespace).Create(w.t.Context(), &appsv1.ControllerRevision{
		ObjectMeta: metav1.ObjectMeta{Name: name, OwnerReferences: []metav1.OwnerReference{
			*metav1.NewControllerRef(owner, owner.GroupVersionKind()),
		}},
		Data: runtime.RawExtension{Raw: []byte(data)}, Revision: number,
	}, metav1.CreateOptions{})
	require.NoError(w.t, err)
}

// run makes a pod of the workload.
func (w *world) run(owner *unstructured.Unstructured, name, revision string) {
	w.t.Helper()
	w.start("", owner, name, revision)
}

// runOn makes a pod on a node; without an owner it is nobody's. It goes as soon as it is deleted: there is no kubelet.
func (w *world) runOn(node string, owner *unstructured.Unstructured, name string) {
	w.t.Helper()
	w.start(node, owner, name, "")
	pods := w.client.Core.CoreV1().Pods(w.client.Namespace)
	running := []byte(`{"status": {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}}`)
	_, err := pods.Patch(w.t.Context(), name, types.MergePatchType, running, metav1.PatchOptions{}, "status")
	require.NoError(w.t, err)
}

func (w *world) start(node string, owner *unstructured.Unstructured, name, revision string) {
	w.t.Helper()
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"app": "web", "controller-revision-hash": revision}},
		Spec: corev1.PodSpec{
			NodeName: node, TerminationGracePeriodSeconds: new(int64(0)),
			Containers: []corev1.Container{{Name: "main", Image: "app:2"}},
		},
	}
	if owner != nil {
		pod.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(owner, owner.GroupVersionKind())}
	}
	_, err := w.client.Core.CoreV1().Pods(w.client.Namespace).Create(w.t.Context(), pod, metav1.CreateOptions{})
	require.NoError(w.t, err)
}

func (w *world) get(kind workload.Kind) *workload.Set {
	w.t.Helper()
	s, err := w.client.Get(w.t.Context(), workload.Named{Kind: kind, Name: "web"})
	require.NoError(w.t, err)
	return s
}

const rolling = `{"type": "RollingUpdate", "rollingUpdate": {"partition": 1}}`
