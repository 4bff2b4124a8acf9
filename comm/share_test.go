package comm_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl"
	"github.com/goccl/goccl/comm"
	"github.com/goccl/goccl/comm/transport"
	"github.com/goccl/goccl/comm/transport/inproc"
	"github.com/goccl/goccl/device"
)

// apart says that it shares memory, as two hosts with one id do, and cannot.
type apart struct{ *inproc.Transport }

func (apart) Name() string { return "shm" }

func (apart) CanConnect(src, dst *transport.Peer) error {
	if !src.Shm || !dst.Shm {
		return errors.New("no shared memory")
	}
	return nil
}

func (apart) Map(context.Context, *transport.Peer, []byte) (transport.Segment, error) {
	return nil, errors.New("no such process")
}

func sharing(given bool) func(int, *comm.Config) {
	return func(_ int, cfg *comm.Config) {
		cfg.Transports = []transport.Transport{apart{inproc.New()}, inproc.New()}
		cfg.HostGiven = given
	}
}

// C20: ranks that look like one host and share no memory use the next transport.
func TestC20NoSharedMemoryFallsBack(t *testing.T) {
	cs := world(t, 3, sharing(false))
	for _, c := range cs {
		require.False(t, c.Mapped())
		require.Equal(t, "inproc", c.TransportTo((c.Rank()+1)%3))
	}
	for _, err := range each(cs, func(c *comm.Communicator) error {
		b := device.SliceOf([]int32{int32(c.Rank() + 1), 7})
		if err := c.AllReduce(b, b, goccl.Sum).Wait(context.Background()); err != nil {
			return err
		}
		if got := device.View[int32](b); got[0] != 6 || got[1] != 21 {
			return errors.New("wrong sum")
		}
		return nil
	}) {
		require.NoError(t, err)
	}
}

// C25: a host id that a person gave to two hosts is an error that says so.
func TestC25GivenHostIDWithoutSharedMemory(t *testing.T) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	_, err := comm.InitAll(ctx, 2, sharing(true))
	require.ErrorIs(t, err, goccl.ErrMismatch)
	require.ErrorContains(t, err, "were given one host id but do not share memory")
	require.ErrorContains(t, err, "map memory of rank")
}
