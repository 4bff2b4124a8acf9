package bootstrap

import (
	"context"
	"net"
	"sync"
	"time"

	"github.com/goccl/goccl/comm/wire"
)

const (
	// outboxLimit is how many bytes may wait for one slow reader. It holds the
	// largest frame and all that a healthy session sends while that is under way.
	outboxLimit = wire.MaxDown + 16<<20

	// flushTime bounds the writing of what is queued when a connection ends.
	flushTime = 2 * time.Second
)

// outbox is the bounded queue in front of a connection. Pushing never blocks; its
// writer goroutine does, on behalf of one reader only.
type outbox struct {
	link  *link
	limit int

	mu     sync.Mutex
	frames [][]byte
	bytes  int
	ending bool          // flush, then stop
	dead   bool          // the writer has stopped
	wake   chan struct{} // has an item when there is something to do
	space  chan struct{} // closed and replaced when the queue was emptied
}

func newOutbox(l *link, limit int) *outbox {
	return &outbox{link: l, limit: limit, wake: make(chan struct{}, 1), space: make(chan struct{})}
}

// push queues a frame, which must not change any more. It reports false when the
// queue is full; frames pushed after the end are dropped.
func (o *outbox) push(frame []byte) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.ending || o.dead {
		return true
	}
	if o.bytes > 0 && o.bytes+len(frame) > o.limit {
		return false
	}
	o.frames = append(o.frames, frame)
	o.bytes += len(frame)
	o.signal()
	return true
}

// pushWait queues a frame and waits for room until ctx ends.
func (o *outbox) pushWait(ctx context.Context, frame []byte) error {
	for {
		o.mu.Lock()
		space := o.space
		o.mu.Unlock()
		if o.push(frame) {
			return nil
		}
		select {
		case <-space:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

func (o *outbox) signal() {
	select {
	case o.wake <- struct{}{}:
	default:
	}
}

// finish makes the writer stop once it has written what is queued, or flushTime
// later.
func (o *outbox) finish() {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.ending {
		return
	}
	o.ending = true
	_ = o.link.conn.SetWriteDeadline(time.Now().Add(flushTime)) // fails only on a closed connection
	o.signal()
}

// take returns all queued frames, and whether the queue is ending.
func (o *outbox) take() ([][]byte, bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	fs := o.frames
	o.frames = nil
	return fs, o.ending
}

// written gives back the room of frames that are on their way.
func (o *outbox) written(n int) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.bytes -= n
	o.makeSpace()
}

func (o *outbox) makeSpace() {
	close(o.space)
	o.space = make(chan struct{})
}

// run is the writer goroutine. It returns when finish was called and all is
// written, and ends the writing side, or at the first error, and closes the
// connection. A positive beat makes it send a Ping that often.
func (o *outbox) run(beat time.Duration) {
	clean := false
	defer func() { o.stop(clean) }()
	var tick <-chan time.Time
	if beat > 0 {
		t := time.NewTicker(beat)
		defer t.Stop()
		tick = t.C
	}
	ping := wire.Append(nil, wire.Ping{})
	for {
		frames, ending := o.take()
		if len(frames) > 0 {
			n := 0
			for _, f := range frames {
				n += len(f)
			}
			bufs := net.Buffers(frames)
			if _, err := bufs.WriteTo(o.link.conn); err != nil {
				return
			}
			o.written(n)
			continue
		}
		if ending {
			clean = true
			return
		}
		select {
		case <-o.wake:
		case <-tick:
			o.push(ping)
		}
	}
}

func (o *outbox) stop(clean bool) {
	o.mu.Lock()
	o.dead = true
	o.frames, o.bytes = nil, 0
	o.makeSpace()
	o.mu.Unlock()
	if clean {
		o.link.endWriting()
		return
	}
	o.link.close()
}
