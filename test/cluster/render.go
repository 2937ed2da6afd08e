package cluster

import (
	"bytes"
	"embed"
	"fmt"
	"text/template"
)

//go:embed templates
var templateFiles embed.FS

// nodeValues fill the templates of a node's configuration.
type nodeValues struct {
	Cgroup, PodPrefix, DNS, Registry, Sandbox, Socket, Snapshotter string
	CNIBinaries, RuncBinary                                        string
	CA                                                             string
	Config                                                         string // folder of the rendered files
}

func render(name string, values any) ([]byte, error) {
	parsed, err := template.New(name).Option("missingkey=error").ParseFS(templateFiles, "templates/"+name)
	if err != nil {
		return nil, fmt.Errorf("parse template %s: %w", name, err)
	}
	var out bytes.Buffer
	if err := parsed.Execute(&out, values); err != nil {
		return nil, fmt.Errorf("render %s: %w", name, err)
	}
	return out.Bytes(), nil
}
