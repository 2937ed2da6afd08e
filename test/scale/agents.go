package scale

import (
	"context"
	"fmt"
	"sync"

	"sigs.k8s.io/controller-runtime/pkg/client"
)

// startAgents plays the agents of all nodes until stop is called: answer writes the next state of an object of the list after
// each change. If a write is refused, nothing is done until the object changes again.
func (b *bench) startAgents(ctx context.Context, list client.ObjectList, answer func(context.Context, client.Object)) (stop func(), err error) {
	events, err := b.client.Watch(ctx, list)
	if err != nil {
		return nil, fmt.Errorf("watch the objects of the agents: %w", err)
	}
	var agents sync.WaitGroup
	for range parallel {
		agents.Go(func() {
			for e := range events.ResultChan() {
				if o, ok := e.Object.(client.Object); ok {
					answer(ctx, o)
				}
			}
		})
	}
	return func() {
		events.Stop()
		agents.Wait()
	}, nil
}
