package cluster

import (
	"context"
	"errors"
	"io"
	"log"
	"net"
	"time"
)

// relay forwards every connection of a listener to one that dial opens, until the listener is closed.
type relay struct {
	name     string
	listener net.Listener
	dial     func(context.Context) (net.Conn, error)
	log      *log.Logger
}

func (r relay) serve(ctx context.Context) {
	for {
		client, err := r.listener.Accept()
		if errors.Is(err, net.ErrClosed) || ctx.Err() != nil {
			return
		}
		if err != nil { // most likely out of file descriptors: others will be closed
			r.log.Printf("relay %s: %v", r.name, err)
			if !pause(ctx, restartPause) {
				return
			}
			continue
		}
		go r.pass(ctx, client)
	}
}

func (r relay) pass(ctx context.Context, client net.Conn) {
	defer client.Close()
	dialing, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	server, err := r.dial(dialing)
	if err != nil {
		r.log.Printf("relay %s: %v", r.name, err)
		return
	}
	defer server.Close()
	done := make(chan struct{}, 2)
	go copyHalf(server, client, done)
	go copyHalf(client, server, done)
	<-done
	<-done
}

// copyHalf forwards one direction and its end. The other direction may continue.
func copyHalf(to, from net.Conn, done chan<- struct{}) {
	_, err := io.Copy(to, from)
	if half, ok := to.(*net.TCPConn); ok && err == nil {
		_ = half.CloseWrite()
	} else { // broken: end both
		_ = to.Close()
		_ = from.Close()
	}
	done <- struct{}{}
}
