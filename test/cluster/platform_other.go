//go:build !unix

package cluster

import (
	"context"
	"syscall"
)

// lockFile does nothing: this system has neither such locks nor real nodes.
func lockFile(context.Context, string, func()) (unlock func(), err error) {
	return func() {}, nil
}

func detachedAttributes() *syscall.SysProcAttr { return nil }
