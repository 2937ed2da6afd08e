// Package make proves what the scripts behind the Makefile promise.
package make
