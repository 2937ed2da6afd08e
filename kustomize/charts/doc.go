// Package charts turns the manifests of features into Helm charts: their files, as text.
//
// A chart has no template that somebody wrote. The package renders the overlays once for each option, as flotilla install does,
// and writes what differs into conditions. It reads and writes no file and knows no cluster.
package charts
