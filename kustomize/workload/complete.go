package workload

import (
	"strings"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/cli-runtime/pkg/genericclioptions"
)

// Complete completes KIND/NAME and KIND NAME: kinds at first, then the names in the cluster.
func Complete(flags genericclioptions.RESTClientGetter) cobra.CompletionFunc {
	return func(command *cobra.Command, args []string, typed string) ([]string, cobra.ShellCompDirective) {
		prefix, kindText := "", ""
		switch before, _, slash := strings.Cut(typed, "/"); {
		case len(args) == 1 && !strings.Contains(args[0], "/"):
			kindText = args[0]
		case len(args) > 0:
			return nil, cobra.ShellCompDirectiveNoFileComp
		case slash:
			kindText, prefix = before, before+"/"
		default:
			return kindNames(typed), cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveNoSpace
		}
		kind, err := KindNamed(kindText)
		if err != nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return complete(command, flags, kind, prefix, typed), cobra.ShellCompDirectiveNoFileComp
	}
}

func kindNames(typed string) []string {
	var found []string
	for _, kind := range Kinds() {
		if name := kind.Short() + "/"; strings.HasPrefix(name, typed) {
			found = append(found, name)
		}
	}
	return found
}

// complete finds nothing where the cluster cannot be asked: a shell has no place for errors.
func complete(command *cobra.Command, flags genericclioptions.RESTClientGetter, kind Kind, prefix, typed string) []string {
	c, err := Connect(flags)
	if err != nil {
		return nil
	}
	resource, err := c.Served(kind)
	if err != nil {
		return nil
	}
	list, err := c.Dynamic.Resource(resource).Namespace(c.Namespace).List(command.Context(), metav1.ListOptions{})
	if err != nil {
		return nil
	}
	var found []string
	for i := range list.Items {
		if name := prefix + list.Items[i].GetName(); strings.HasPrefix(name, typed) {
			found = append(found, name)
		}
	}
	return found
}
