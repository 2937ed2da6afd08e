package cluster

import (
	"container/heap"
	"time"
)

// happening is something that will happen.
type happening struct {
	at    time.Time
	order int
	do    func()
}

// queue has what will happen, the next first.
type queue struct {
	items []happening
	count int
}

// Len implements heap.Interface.
func (q *queue) Len() int { return len(q.items) }

// Less implements heap.Interface.
func (q *queue) Less(i, j int) bool {
	if q.items[i].at.Equal(q.items[j].at) {
		return q.items[i].order < q.items[j].order
	}
	return q.items[i].at.Before(q.items[j].at)
}

// Swap is part of heap.Interface.
func (q *queue) Swap(i, j int) { q.items[i], q.items[j] = q.items[j], q.items[i] }

// Push is part of heap.Interface.
func (q *queue) Push(x any) { q.items = append(q.items, x.(happening)) }

// Pop implements heap.Interface.
func (q *queue) Pop() any {
	last := q.items[len(q.items)-1]
	q.items = q.items[:len(q.items)-1]
	return last
}

// After makes something happen once the time has passed.
func (w *World) After(d time.Duration, do func()) {
	w.queue.count++
	heap.Push(&w.queue, happening{
		at:    w.now.Add(d),
		order: w.queue.count,
		do:    do,
	})
}

// Step makes the next thing happen and moves the time to it. It returns false if nothing will happen by itself any
// more.
func (w *World) Step() bool {
	if w.queue.Len() == 0 {
		return false
	}
	next := heap.Pop(&w.queue).(happening)
	if next.at.After(w.now) {
		w.now = next.at
	}
	next.do()
	return true
}

// StepWithin lets the next thing happen unless it is further away than d.
func (w *World) StepWithin(d time.Duration) {
	if w.queue.Len() > 0 && !w.queue.items[0].at.After(w.now.Add(d)) {
		w.Step()
	}
}

// Advance moves the time by d and lets everything happen that falls into it.
func (w *World) Advance(d time.Duration) {
	until := w.now.Add(d)
	for w.queue.Len() > 0 && !w.queue.items[0].at.After(until) {
		w.Step()
	}
	w.now = until
}

// Next returns when the next thing will happen by itself; false if nothing will.
func (w *World) Next() (at time.Time, is bool) {
	if w.queue.Len() == 0 {
		return time.Time{}, false
	}
	return w.queue.items[0].at, true
}

// Later does something at a time after now, without anything else happening until then, and returns to the present.
func (w *World) Later(d time.Duration, do func()) {
	now := w.now
	defer func() { w.now = now }()
	w.now = now.Add(d)
	do()
}

// Quiet reports whether nothing will happen by itself.
func (w *World) Quiet() bool { return w.queue.Len() == 0 }
