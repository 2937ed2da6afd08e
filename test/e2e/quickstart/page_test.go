package quickstart

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/flotilla-project/flotilla/kustomize/release"
	"github.com/flotilla-project/flotilla/kustomize/release/images"
	"github.com/flotilla-project/flotilla/kustomize/release/overlays"

	"github.com/flotilla-project/flotilla/test/story"
)

const (
	page = "../../../docs/get-started/quick-start.md"
	// file is the install file, as the page names it.
	file = "install-cloneset.yaml"
)

// standIn reports whether the command gets the install file: from the public releases, or by a build without one. Such commands
// are not run. The file of newRelease stands in for it, and the cluster's registry for the public one.
func standIn(command string) bool {
	return regexp.MustCompile(`^(curl -L -o install-cloneset\.yaml|git clone|make images|go build|bin/flotilla install) `).MatchString(command)
}

// unsteady are lines that an output may lack: progress, which a fast cluster has none of, and objects that the deletion of
// their namespace has deleted before kubectl did.
var unsteady = regexp.MustCompile(`(?m)^(Waiting for deployment .*|.* deleted from flotilla-system namespace)\n`)

// deletions are lines that kubectl prints without the namespace before 1.34.
var deletions = regexp.MustCompile(`(?m)^.* deleted( from \S+ namespace)?(\n|\z)`)

// Each command of the page prints the output that the page shows. Pods keep their names, UIDs and IPs, and nothing is left.
func TestTheQuickStart(t *testing.T) {
	tutorial, err := story.ReadTutorial(page)
	require.NoError(t, err)
	folder := newRelease(t)
	for name, content := range tutorial.Files {
		require.NoError(t, os.WriteFile(filepath.Join(folder, name), []byte(content), 0o600))
	}
	for version, reference := range map[string]string{"v1": "nginx:1.28", "v2": "nginx:1.29"} {
		givenImage(t, version, reference)
	}
	// Suites before this one have installed operators.
	out, err := world.Shell(t, folder, "kubectl delete --ignore-not-found -f "+file)
	require.NoError(t, err, out)

	began := time.Now()
	var shown, seen []string
	for _, step := range tutorial.Steps {
		if standIn(step.Command) {
			continue
		}
		require.NotEmpty(t, step.Output, "the page has no output of: %s", step.Command)
		printed := follow(t, folder, step.Command)
		require.Equal(t, steady(t, step.Output), steady(t, printed), "%s prints what the page does not show:\n%s", step.Command, printed)
		shown, seen = appendIdentities(shown, step.Output), appendIdentities(seen, printed)
	}
	t.Logf("the commands of the page took %s", time.Since(began).Round(time.Second))

	keptIdentities(t, shown)
	keptIdentities(t, seen)
	nothingIsLeft(t, folder)
}

// newRelease rehearses a release of cloneset, which pushes its images, and returns the folder of its files.
func newRelease(t *testing.T) (folder string) {
	t.Helper()
	root, err := images.FindRoot()
	require.NoError(t, err)
	folder = filepath.Join(t.TempDir(), "release")
	var out strings.Builder
	rehearsal := release.Rehearsal{Root: root, Output: folder, Registry: world.Cluster.Registry(), Only: []string{"cloneset"}, Out: &out}
	require.NoError(t, rehearsal.Rehearse(t.Context()), out.String())
	of, err := filepath.Glob(filepath.Join(folder, "cloneset-v*"))
	require.NoError(t, err)
	require.Len(t, of, 1)
	return of[0]
}

// follow runs the command and returns its output. It repeats the command as the page asks for.
func follow(t *testing.T, folder, command string) (out string) {
	t.Helper()
	began := time.Now()
	story.Eventually(t, command, func(context.Context) error {
		printed, err := world.Shell(t, folder, command)
		out = printed
		if err != nil && strings.Contains(printed, "failed calling webhook") {
			return errors.New(printed)
		}
		require.NoError(t, err, "%s\n%s", command, printed)
		return nil
	})
	t.Logf("%s: %s\n%s", time.Since(began).Round(time.Second/10), command, out)
	return out
}

// steady returns the lines of an output that every run prints.
func steady(t *testing.T, output string) string {
	t.Helper()
	if !world.Since(t, 34) {
		output = deletions.ReplaceAllString(output, "")
	}
	return story.General(unsteady.ReplaceAllString(output, ""))
}

// appendIdentities appends the names, UIDs and IPs of the pods in an output to those of outputs before.
func appendIdentities(all []string, output string) []string {
	pods := regexp.MustCompile(`(?m)^web-\S+ +\S+-\S+-\S+-\S+-\S+ +[\d.]+`).FindAllString(output, -1)
	if pods == nil {
		return all
	}
	return append(all, strings.Join(pods, "\n"))
}

// keptIdentities checks that the lists of pods before and after the update are the same.
func keptIdentities(t *testing.T, lists []string) {
	t.Helper()
	if assert.Len(t, lists, 2, "pods are listed before and after the update") {
		assert.Equal(t, lists[0], lists[1])
	}
}

// nothingIsLeft checks that the objects of the install file and those of the CloneSet are gone.
func nothingIsLeft(t *testing.T, folder string) {
	t.Helper()
	manifests, err := os.ReadFile(filepath.Join(folder, file))
	require.NoError(t, err)
	objects, err := overlays.Objects(manifests)
	require.NoError(t, err)
	require.NotEmpty(t, objects)
	for _, o := range objects {
		err := world.Client.Get(t.Context(), client.ObjectKeyFromObject(&o), &o)
		assert.True(t, apierrors.IsNotFound(err) || meta.IsNoMatchError(err), "%s %s is left: %v", o.GetKind(), o.GetName(), err)
	}
	story.Eventually(t, "the end of pods and revisions", func(ctx context.Context) error {
		pods, revisions := &corev1.PodList{}, &appsv1.ControllerRevisionList{}
		own := []client.ListOption{client.InNamespace(metav1.NamespaceDefault), client.MatchingLabels{"app": "web"}}
		err := errors.Join(world.Client.List(ctx, pods, own...), world.Client.List(ctx, revisions, own...))
		return errors.Join(err, story.Want(len(pods.Items)+len(revisions.Items) == 0, "%d pods and %d revisions", len(pods.Items), len(revisions.Items)))
	})
}
