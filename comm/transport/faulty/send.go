package faulty

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/goccl/goccl"
	"github.com/goccl/goccl/comm/transport"
	"github.com/goccl/goccl/internal/shmem"
	"github.com/goccl/goccl/internal/spin"
)

// closeTimeout bounds how long Close waits for what is under way.
const closeTimeout = 10 * time.Second

// sendSide is a sending side with the plan in front. One pump takes slots as
// they are posted and queues them on the wire; another delivers each when its
// time has come. Between them a connection holds up to Slots steps more, as a
// real link does.
type sendSide struct {
	owner *Transport
	inner transport.SendSide
	conn  transport.Conn
	to    *transport.Peer
	plan  plan
	wire  *wire

	fifo  *transport.Send // the executor's end
	tap   *transport.Recv // the first pump's end
	rung  chan struct{}   // a post or Close while the first pump slept
	queue chan parcel
	spare chan []byte // buffers that are not under way
	alarm *alarm

	delivered atomic.Uint64
	progress  chan struct{} // a step was delivered, or the pumps ended
	ending    atomic.Pointer[Kind]
	closing   atomic.Bool
	halted    chan struct{} // closed by halt
	ended     chan struct{} // closed when the pumps have ended
	once      sync.Once
	wait      sync.WaitGroup
}

// parcel is a step under way.
type parcel struct {
	payload []byte
	sig     uint32
	step    uint64
	arrives time.Time
}

var _ transport.SendSide = (*sendSide)(nil)

func newSendSide(t *Transport, inner transport.SendSide, c transport.Conn, to *transport.Peer, local bool) (*sendSide, error) {
	mem, err := shmem.Private(c.FIFO.Bytes())
	if err != nil {
		return nil, err
	}
	alarm, err := newAlarm()
	if err != nil {
		return nil, err
	}
	s := &sendSide{owner: t, inner: inner, conn: c, to: to, plan: planFor(t.config.Faults, c), wire: t.wire(c),
		rung: make(chan struct{}, 1), queue: make(chan parcel, c.FIFO.Slots),
		spare: make(chan []byte, c.FIFO.Slots), alarm: alarm, progress: make(chan struct{}, 1),
		halted: make(chan struct{}), ended: make(chan struct{})}
	for range c.FIFO.Slots {
		s.spare <- make([]byte, c.FIFO.SlotBytes)
	}
	s.fifo = transport.NewSend(mem, c.FIFO, func() { signal(s.rung) })
	s.tap = transport.NewRecv(mem, c.FIFO, nil)
	s.wait.Go(s.take)
	// Who frees slots of the inner FIFO: a pump of a network, or the peer.
	local = local || to.PID == os.Getpid()
	s.wait.Go(func() { s.deliver(local) })
	return s, nil
}

// signal sets a flag that one goroutine waits for.
func signal(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

func (s *sendSide) FIFO() *transport.Send { return s.fifo }

// take is the first pump.
func (s *sendSide) take() {
	defer close(s.queue)
	for s.await() {
		var buffer []byte
		select {
		case buffer = <-s.spare:
		case <-s.halted:
			return
		}
		addr, n, sig := s.tap.Peek()
		step := s.tap.Step()
		p := parcel{payload: buffer[:n], sig: sig, step: step}
		copy(p.payload, shmem.At(addr, n).Bytes())
		p.arrives = s.wire.carry(time.Now(), n).Add(s.plan.delay(step))
		s.tap.Release()
		s.queue <- p // has room for as many as there are buffers
	}
}

// await waits for a posted slot; false: there will be no more.
func (s *sendSide) await() bool {
	for !s.tap.Ready() {
		if s.closing.Load() {
			return s.tap.Ready() // posted before Close began
		}
		s.tap.Bell().Store(1)
		if s.tap.Ready() {
			break
		}
		select {
		case <-s.rung:
		case <-s.halted:
			return false
		}
		s.tap.Bell().Store(0)
	}
	return true
}

// deliver is the second pump. local: the inner FIFO is emptied by this process.
func (s *sendSide) deliver(local bool) {
	defer func() {
		close(s.ended)
		signal(s.progress)
		spin.Wake(s.fifo.CreditBell())
	}()
	to := s.inner.FIFO()
	w := spin.Waiter{Policy: spin.Policy{Local: local, Oversubscribed: true, Word: to.CreditBell()}}
	for p := range s.queue {
		if kind, ok := s.plan.ends(p.step); ok {
			s.ending.Store(&kind)
			if kind == Cut {
				s.inner.Close() // the receiver sees the end
			}
			return
		}
		if d := time.Until(p.arrives); d > 0 && !s.alarm.wait(d) {
			return
		}
		for !to.Ready() {
			select {
			case <-s.halted:
				w.Reset()
				return
			default:
			}
			if s.inner.Err() != nil {
				w.Reset()
				return
			}
			w.Turn()
		}
		w.Reset()
		s.plan.corrupt(p.step, p.payload)
		copy(shmem.At(to.Payload(), len(p.payload)).Bytes(), p.payload)
		to.Post(len(p.payload), p.sig)
		s.spare <- p.payload[:cap(p.payload)]
		s.delivered.Add(1)
		signal(s.progress)
	}
}

func (s *sendSide) err(cause error) error {
	e := goccl.NewError("", cause)
	e.Transport, e.Rank, e.Peer, e.PeerAddr, e.Channel = s.owner.Name(), s.conn.Src, s.to.Rank, s.to.Host, s.conn.Channel
	return e
}

// Err is the inner side's, and a planned cut.
func (s *sendSide) Err() error {
	if s.closing.Load() {
		return s.err(goccl.ErrClosed)
	}
	if kind := s.ending.Load(); kind != nil && *kind == Cut {
		return s.err(fmt.Errorf("%w: the connection was cut", goccl.ErrPeerLost))
	}
	return s.inner.Err()
}

// Flush waits until all that was posted has been delivered.
func (s *sendSide) Flush(ctx context.Context) error {
	for s.delivered.Load() < s.fifo.Step() {
		if err := s.Err(); err != nil {
			return err
		}
		select {
		case <-s.progress:
		case <-s.halted:
			return s.err(goccl.ErrClosed)
		case <-ctx.Done():
			return s.err(fmt.Errorf("%w: posted data is still under way: %w", goccl.ErrTimeout, context.Cause(ctx)))
		}
	}
	return s.inner.Flush(ctx)
}

// Close delivers what is under way, in the time it takes but at most 10 s, and
// closes the inner side.
func (s *sendSide) Close() error {
	if !s.closing.CompareAndSwap(false, true) {
		return nil
	}
	signal(s.rung)
	timer := time.NewTimer(closeTimeout)
	defer timer.Stop()
	var err error
	select {
	case <-s.ended:
	case <-s.halted:
	case <-timer.C:
		err = s.err(fmt.Errorf("%w: posted data is still under way", goccl.ErrTimeout))
	}
	s.halt()
	s.owner.forget(s)
	return errors.Join(err, s.inner.Close())
}

// halt ends the pumps at once and waits for them.
func (s *sendSide) halt() {
	s.once.Do(func() {
		close(s.halted)
		s.alarm.stop()
	})
	s.wait.Wait()
}
