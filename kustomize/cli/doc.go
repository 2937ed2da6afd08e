// Package cli has the code that the subcommands of flotilla share: how they reach the cluster, where they write, how they
// end.
//
// A subcommand is a package that exports NewCommand(flags, streams); cmd/flotilla adds it to the root. It reads its input
// from flags and arguments, writes to the streams only and returns errors instead of ending the process.
package cli
