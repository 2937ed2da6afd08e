package admission

import (
	"context"
	"slices"
	"sync"
)

// room is a number of bytes that requests share. Each takes more and more of them, and gives all back at the end. A request
// gets bytes only while each of those that are there can still get all that it may need, in some order: so none of them
// waits for another that waits for it.
type room struct {
	share, all int64 // of one address, of all

	mu     sync.Mutex
	guests map[*guest]bool
	freed  chan struct{} // closed when bytes are given back
}

// guest is a request that takes bytes.
type guest struct {
	address    string
	size, held int64 // the bytes that it may need, the bytes that it has
}

func newRoom(share, all int64) *room {
	return &room{
		share:  share,
		all:    all,
		guests: map[*guest]bool{},
		freed:  make(chan struct{}),
	}
}

// enter lets a request in that may need so many bytes, at most its address's share.
func (r *room) enter(address string, size int64) *guest {
	g := &guest{address: address, size: size}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.guests[g] = true
	return g
}

// leave gives back the bytes of the request.
func (r *room) leave(g *guest) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.guests, g)
	close(r.freed)
	r.freed = make(chan struct{})
}

// take returns when the request has so many bytes, or with an error when ctx ends.
func (r *room) take(ctx context.Context, g *guest, held int64) error {
	for {
		freed, ok := r.try(g, held)
		if ok {
			return nil
		}
		select {
		case <-freed:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// try gives the request the bytes if that is safe, or returns a channel that is closed when it should try again.
func (r *room) try(g *guest, held int64) (freed <-chan struct{}, ok bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	before := g.held
	if held <= before {
		return nil, true
	}
	g.held = held
	if !r.isSafe() {
		g.held = before
		return r.freed, false
	}
	return nil, true
}

// isSafe reports whether all requests can get the bytes that they may need, one after the other.
func (r *room) isSafe() bool {
	var waiting []*guest
	free, shares := r.all, map[string]int64{} // the bytes that are left of all, the bytes that addresses have
	for g := range r.guests {
		if g.held == 0 {
			continue // it has nothing that others wait for
		}
		waiting = append(waiting, g)
		free -= g.held
		if shares[g.address] += g.held; free < 0 || shares[g.address] > r.share {
			return false
		}
	}
	for len(waiting) > 0 {
		before := len(waiting)
		waiting = slices.DeleteFunc(waiting, func(g *guest) bool {
			ends := g.size-g.held <= min(free, r.share-shares[g.address])
			if ends {
				free += g.held
				shares[g.address] -= g.held
			}
			return ends
		})
		if len(waiting) == before {
			return false
		}
	}
	return true
}
