package transporttest

import (
	"context"
	"encoding/json"
	"errors"
	"io"

	"github.com/goccl/goccl"
	"github.com/goccl/goccl/comm/transport"
	"github.com/goccl/goccl/internal/spin"
	"github.com/goccl/goccl/internal/testproc"
)

// hello is what the two processes tell each other before they are connected.
type hello struct {
	Peer   *transport.Peer
	Conn   transport.Conn // parent only: its connection to the echo
	Handle []byte         // of the teller's receiving side
}

// Echo is a rank process with a transport that sends back whatever it gets, until
// its peer closes. It is rank 1; the test is rank 0.
func Echo(open func() (transport.Transport, error)) testproc.Rank {
	return func(c *testproc.Child) (err error) {
		ctx, cancel := context.WithTimeout(context.Background(), Watchdog)
		defer cancel()
		tr, err := open()
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, tr.Close()) }()
		me, err := describe(1, tr)
		if err != nil {
			return err
		}
		if err := tell(c, hello{Peer: me}); err != nil {
			return err
		}
		var parent hello
		if err := json.Unmarshal([]byte(c.Next()), &parent); err != nil {
			return err
		}
		in, err := tr.SetupRecv(ctx, parent.Conn, parent.Peer)
		if err != nil {
			return err
		}
		defer in.Close()
		if err := tell(c, hello{Handle: in.Handle()}); err != nil {
			return err
		}
		out, err := tr.ConnectSend(ctx, back(parent.Conn), parent.Peer, parent.Handle)
		if err != nil {
			return err
		}
		defer out.Close()
		_, maps := tr.(transport.Mapper)
		return echo(ctx, in, out, !maps)
	}
}

func tell(c *testproc.Child, h hello) error {
	b, err := json.Marshal(h)
	if err != nil {
		return err
	}
	return c.Ready(string(b))
}

// back is the connection in the other direction.
func back(c transport.Conn) transport.Conn {
	c.Src, c.Dst = c.Dst, c.Src
	return c
}

func echo(ctx context.Context, in transport.RecvSide, out transport.SendSide, network bool) error {
	recv, err := in.FIFO(ctx)
	if err != nil {
		return err
	}
	send := out.FIFO()
	w := spin.Waiter{Policy: spin.Policy{Network: network, Word: recv.Bell()}}
	defer w.Reset()
	for {
		for !recv.Ready() {
			err := stuck(ctx, in.Err())
			if errors.Is(err, io.EOF) {
				return nil
			}
			if err != nil {
				return err
			}
			w.Turn()
		}
		w.Reset()
		addr, n, sig := recv.Peek()
		for !send.Ready() {
			if err := stuck(ctx, out.Err()); err != nil && !errors.Is(err, goccl.ErrPeerLost) {
				return err
			}
			w.Turn()
		}
		w.Reset()
		copy(payload(send.Payload(), n), payload(addr, n))
		send.Post(n, sig)
		recv.Release()
	}
}
