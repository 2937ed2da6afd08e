package operator

import "runtime"

// turns runs a function in turns: it runs only while somebody waits in next, so that two of them never run at the same time.
// It does by goroutines what iter.Pull does by coroutines. The race detector keeps the memory of each coroutine that has
// ended, some 90 KiB; a world has thousands of them.
type turns struct {
	begin  chan struct{}
	end    chan struct{}
	ended  bool
	failed any  // what the function panicked with
	exited bool // the function ended its goroutine, as a failed test does
}

// inTurns returns the turns of a function, which has not begun.
func inTurns(run func()) *turns {
	t := &turns{begin: make(chan struct{}), end: make(chan struct{})}
	go func() {
		t.exited = true
		defer func() {
			if t.failed = recover(); t.failed != nil {
				t.exited = false
			}
			t.ended = true
			t.end <- struct{}{}
		}()
		<-t.begin
		run()
		t.exited = false
	}()
	return t
}

// next runs the function until it pauses or ends, and reports whether it has ended. What ends the function ends the caller,
// too: a panic, or the end of its goroutine.
func (t *turns) next() (ended bool) {
	t.begin <- struct{}{}
	<-t.end
	switch {
	case t.failed != nil:
		panic(t.failed)
	case t.exited && t.ended:
		runtime.Goexit()
	}
	return t.ended
}

// pause ends a turn, and returns at the beginning of the next one.
func (t *turns) pause() {
	t.end <- struct{}{}
	<-t.begin
}
