package argocd

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"
)

// Customization is the folder of a kind in resource_customizations, the form in which Argo CD's repository holds checks and actions.
type Customization struct {
	// Kind has the names of the folder and of the folder above.
	Kind schema.GroupKind
	// Health is the script health.lua.
	Health string
	// Actions are the scripts of folder actions; nil without it.
	Actions *Actions
	// Folder holds the scripts, their tests and the objects of the tests.
	Folder fs.FS
}

// Customizations reads resource_customizations. They are in the order of group and kind.
func Customizations(root fs.FS) ([]Customization, error) {
	scripts, err := fs.Glob(root, "*/*/health.lua")
	if err != nil {
		return nil, fmt.Errorf("look for checks: %w", err)
	}
	var all []Customization
	for _, script := range scripts {
		folder := path.Dir(script)
		c := Customization{Kind: schema.GroupKind{Group: path.Dir(folder), Kind: path.Base(folder)}}
		if c.Folder, err = fs.Sub(root, folder); err != nil {
			return nil, fmt.Errorf("open %s: %w", folder, err)
		}
		if err := c.read(); err != nil {
			return nil, fmt.Errorf("read the customization of %s: %w", c.Kind, err)
		}
		all = append(all, c)
	}
	return all, nil
}

// read reads the scripts.
func (c *Customization) read() error {
	health, err := fs.ReadFile(c.Folder, "health.lua")
	if err != nil {
		return err
	}
	c.Health = string(health)
	discovery, err := fs.ReadFile(c.Folder, "actions/discovery.lua")
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	c.Actions = &Actions{Discovery: string(discovery)}
	scripts, err := fs.Glob(c.Folder, "actions/*/action.lua")
	if err != nil {
		return fmt.Errorf("look for actions: %w", err)
	}
	for _, script := range scripts {
		text, err := fs.ReadFile(c.Folder, script)
		if err != nil {
			return err
		}
		c.Actions.Definitions = append(c.Actions.Definitions, Action{Name: path.Base(path.Dir(script)), Script: string(text)})
	}
	return nil
}

// HealthTests are the tests of health.lua, as health_test.yaml has them.
type HealthTests struct {
	Tests []HealthTest `json:"tests"`
}

// HealthTest is an object and its health.
type HealthTest struct {
	InputPath    string `json:"inputPath"`
	HealthStatus Health `json:"healthStatus"`
}

// ActionTests are the tests of actions, as actions/action_test.yaml has them.
type ActionTests struct {
	DiscoveryTests []DiscoveryTest `json:"discoveryTests"`
	ActionTests    []ActionTest    `json:"actionTests"`
}

// DiscoveryTest is an object and the actions that users can choose.
type DiscoveryTest struct {
	InputPath string `json:"inputPath"`
	Result    []struct {
		Name     string `json:"name"`
		Disabled bool   `json:"disabled"`
	} `json:"result"`
}

// ActionTest is an object before and after an action.
type ActionTest struct {
	Action             string `json:"action"`
	InputPath          string `json:"inputPath"`
	ExpectedOutputPath string `json:"expectedOutputPath"`
}

// Decode reads a YAML file of the folder, and accepts no unknown field.
func (c Customization) Decode(name string, into any) error {
	text, err := fs.ReadFile(c.Folder, name)
	if err != nil {
		return err
	}
	if err := yaml.UnmarshalStrict(text, into); err != nil {
		return fmt.Errorf("read %s: %w", name, err)
	}
	return nil
}

// configMapHead begins the patch of Argo CD's ConfigMap.
const configMapHead = `# Generated from resource_customizations by make generate. Change the scripts there.
#
# Health checks and actions for Argo CD, which its ConfigMap holds by group and kind for all versions of the kind. They take
# the place of those that Argo CD has for kinds of these names: those know fields of v1alpha1 alone.
apiVersion: v1
kind: ConfigMap
metadata:
  name: argocd-cm
data:
`

// ConfigMap returns the customizations as a patch of Argo CD's ConfigMap.
func ConfigMap(all []Customization) string {
	var out strings.Builder
	out.WriteString(configMapHead)
	for _, c := range all {
		block(&out, "  ", healthKey+c.Kind.Group+"_"+c.Kind.Kind, c.Health)
	}
	for _, c := range all {
		if c.Actions == nil {
			continue
		}
		var actions strings.Builder
		block(&actions, "", "discovery.lua", c.Actions.Discovery)
		actions.WriteString("definitions:\n")
		for _, action := range c.Actions.Definitions {
			fmt.Fprintf(&actions, "- name: %s\n", action.Name)
			block(&actions, "  ", "action.lua", action.Script)
		}
		block(&out, "  ", actionKey+c.Kind.Group+"_"+c.Kind.Kind, actions.String())
	}
	return out.String()
}

// block writes a key with a text of several lines.
func block(out *strings.Builder, indent, key, text string) {
	fmt.Fprintf(out, "%s%s: |\n", indent, key)
	for line := range strings.Lines(text) {
		if line != "\n" {
			out.WriteString(indent + "  ")
		}
		out.WriteString(line)
	}
}
