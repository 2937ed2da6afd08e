package testenv

import (
	"context"
	"sync/atomic"

	"sigs.k8s.io/controller-runtime/pkg/client"
)

// CreateCounter is a client without a server. It accepts and counts every create request, dry runs included. Other
// requests panic.
type CreateCounter struct {
	client.Client
	created atomic.Int64
}

// Create counts the request.
func (c *CreateCounter) Create(context.Context, client.Object, ...client.CreateOption) error {
	c.created.Add(1)
	return nil
}

// Created returns the number of requests so far.
func (c *CreateCounter) Created() int64 { return c.created.Load() }
