//go:build !unix

package cluster

import (
	"context"
	"syscall"
)

// lockFile does nothing: this system has no such locks, and no real nodes either.
func lockFile(context.Context, string, func()) (unlock func(), err error) {
	return func() {}, nil
}

func detachedAttributes() *syscall.SysProcAttr { return nil }
