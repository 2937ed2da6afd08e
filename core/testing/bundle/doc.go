// Package bundle keeps what explains a failed test of a cluster: the objects of its namespace, their events and the logs
// of its operators, in a folder that the test names.
package bundle
