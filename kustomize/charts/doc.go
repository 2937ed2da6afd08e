// Package charts turns the manifests of features into Helm charts: their files, as text.
//
// No template is written by hand. The package renders the overlays once for each option, as flotilla install does, and writes the
// differences into conditions. It reads and writes no file and knows no cluster.
package charts
