// Command crdschema fits a CRD that controller-gen wrote to the objects that users have.
//
// It reads one CRD from standard input and writes it to standard output. Its flags name where the
// schema embeds types of core Kubernetes; outside of these places the schema stays as it is. It never
// reads or writes anything else, so that the same input always gives the same bytes.
package main

import (
	"flag"
	"fmt"
	"io"
	"os"
	"strings"
)

// paths is a flag that may be given several times.
type paths []string

func (p *paths) String() string { return strings.Join(*p, ",") }

func (p *paths) Set(value string) error {
	*p = append(*p, value)
	return nil
}

func main() {
	var options Options
	flag.Var((*paths)(&options.Embedded), "embedded", "path of an embedded core type, such as spec.template; may be repeated")
	flag.StringVar(&options.ConversionService, "conversion-service", "", "Service that serves /convert; empty for a kind with one version")
	flag.StringVar(&options.Namespace, "namespace", "flotilla-system", "namespace of the conversion Service")
	flag.Parse()
	if err := run(options, os.Stdin, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "crdschema:", err)
		os.Exit(1)
	}
}

func run(options Options, in io.Reader, out io.Writer) error {
	crd, err := io.ReadAll(in)
	if err != nil {
		return fmt.Errorf("read the CRD: %w", err)
	}
	fitted, err := Fit(crd, options)
	if err != nil {
		return err
	}
	if _, err := out.Write(fitted); err != nil {
		return fmt.Errorf("write the CRD: %w", err)
	}
	return nil
}
