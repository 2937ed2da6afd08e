// Package results reads what go test -json prints, and tells people of it.
package results
