// Package charts holds the tests of the Helm charts, in a module of its own: no other module depends on Helm.
package charts
