// Command results tells people what go test -json has printed.
//
//	results show FILE      what was said, a line for each package that passed, and what failed tests printed; - is standard input
//	results sum FILE...    the slowest tests, and how many passed, failed and were skipped
package main

import (
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/flotilla-project/flotilla/test/results"
)

func main() {
	if err := run(os.Args[1:], os.Stdin, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "results:", err)
		os.Exit(1)
	}
}

func run(arguments []string, in io.Reader, out io.Writer) error {
	if len(arguments) < 2 {
		return errors.New("usage: results show|sum FILES")
	}
	var sum results.Summary
	ended := sum.Add
	said := func(string) {}
	if arguments[0] == "show" {
		ended = func(p results.Package) { fmt.Fprint(out, p.Text()) }
		said = func(line string) { fmt.Fprint(out, line) }
	}
	for _, file := range arguments[1:] {
		if err := read(file, in, ended, said); err != nil {
			return err
		}
	}
	if arguments[0] == "sum" {
		fmt.Fprint(out, sum.String())
	}
	return nil
}

func read(file string, in io.Reader, ended func(results.Package), said func(string)) error {
	if file == "-" {
		return results.Read(in, ended, said)
	}
	from, err := os.Open(file)
	if err != nil {
		return err
	}
	defer func() { _ = from.Close() }()
	return results.Read(from, ended, said)
}
