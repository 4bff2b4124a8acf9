package dist_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl"
	"github.com/goccl/goccl/comm/transport"
	"github.com/goccl/goccl/device"
	"github.com/goccl/goccl/dist"
	"github.com/goccl/goccl/internal/leak"
	"github.com/goccl/goccl/internal/testproc"
)

func TestMain(m *testing.M) {
	testproc.Enter(map[string]testproc.Rank{"rank": rankProcess})
	os.Exit(leak.Check(m))
}

// order is what the test tells its rank processes.
type order struct {
	Do    string
	Addr  string // MASTER_ADDR:MASTER_PORT
	Size  int    // WORLD_SIZE; 0: the number of processes
	Ranks []int  // RANK by process; nil: the process's number
}

// A process tells its parent how Run ended as "ended: " and the error's first line.
func rankProcess(c *testproc.Child) error {
	var o order
	if err := json.Unmarshal([]byte(c.Arg), &o); err != nil {
		return err
	}
	rank, size := c.Rank, c.Size
	if o.Ranks != nil {
		rank = o.Ranks[c.Rank]
	}
	if o.Size != 0 {
		size = o.Size
	}
	host, port, err := net.SplitHostPort(o.Addr)
	if err != nil {
		return err
	}
	env := map[string]string{"RANK": strconv.Itoa(rank), "WORLD_SIZE": strconv.Itoa(size), "MASTER_ADDR": host, "MASTER_PORT": port,
		"GOCCL_JOB_ID": "the test's"}
	if len(c.Files) > 0 {
		env["GOCCL_LISTEN_FD"] = strconv.Itoa(int(c.Files[0].Fd()))
	}
	for k, v := range env {
		if err := os.Setenv(k, v); err != nil {
			return err
		}
	}
	cfg := dist.FromEnv()
	if o.Do == "fail in init" && rank == 1 {
		cfg.Transport.Decorate = func(ts []transport.Transport) []transport.Transport {
			ts[0] = broken{ts[0]}
			return ts
		}
	}
	err = dist.Run(context.Background(), cfg, func(ctx context.Context, g *dist.Group) error { return work(ctx, o.Do, c, g) })
	if err != nil {
		// The rest of the error is in the output, for a test that fails.
		os.Stderr.WriteString(err.Error() + "\n")
	}
	return c.Ready("ended: " + firstLine(err))
}

type broken struct{ transport.Transport }

func (broken) Announce() ([]byte, error) { return nil, errors.New("out of memory") }

func work(ctx context.Context, do string, c *testproc.Child, g *dist.Group) error {
	switch do {
	case "collectives":
		for _, n := range []int{3, 50_000} {
			if err := exercise(ctx, g, n); err != nil {
				return err
			}
		}
		return nil
	case "hold", "fail in init":
		if err := c.Ready("joined"); err != nil {
			return err
		}
		if line := c.Next(); line != "go" {
			return errors.New(line)
		}
		return nil
	case "panic":
		if g.Rank() == 1 {
			panic("out of ideas")
		}
		return loop(ctx, c, g)
	case "loop":
		return loop(ctx, c, g)
	case "first out":
		if err := g.Barrier(ctx); err != nil || g.Rank() == 0 {
			return errors.Join(err, c.Ready("leaving"))
		}
		if err := c.Ready("waiting"); err != nil {
			return err
		}
		c.Next()
		j, _ := dist.JobOf(ctx)
		pair, err := j.New(ctx, "pair", []int{2, 1})
		if err != nil {
			return err
		}
		return exercise(ctx, pair, 100)
	}
	return fmt.Errorf("no such work: %q", do)
}

// loop reduces until that fails, and says when it has begun and whom it waits for.
func loop(ctx context.Context, c *testproc.Child, g *dist.Group) error {
	b := make([]float32, 1<<20)
	if err := g.Barrier(ctx); err != nil {
		return err
	}
	if err := c.Ready("running"); err != nil {
		return err
	}
	told := false
	for {
		w := g.AllReduce(device.SliceOf(b), goccl.Max)
		for {
			short, cancel := context.WithTimeout(ctx, 20*time.Millisecond)
			err := w.Wait(short)
			cancel()
			if err == nil {
				break
			}
			if short.Err() == nil || ctx.Err() != nil || g.Err() != nil {
				return err
			}
			if late := w.Info().Waiting; len(late) > 0 && !told {
				told = true
				if err := c.Ready("blocked: " + late[0].String()); err != nil {
					return err
				}
			}
		}
	}
}

// start starts processes for o, with the launcher's listener on rank 0 when o has
// no address.
func start(t *testing.T, n int, o order, env ...string) *testproc.Group {
	t.Helper()
	var l *net.TCPListener
	opt := testproc.Options{Env: env}
	if o.Addr == "" {
		var err error
		l, err = net.ListenTCP("tcp", &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1)})
		require.NoError(t, err)
		defer l.Close()
		o.Addr = l.Addr().String()
		f, err := l.File()
		require.NoError(t, err)
		defer f.Close()
		opt.Files = func(rank int) []*os.File {
			if rank == 0 {
				return []*os.File{f}
			}
			return nil
		}
	}
	arg, err := json.Marshal(o)
	require.NoError(t, err)
	opt.Arg = string(arg)
	return testproc.Start(t, "rank", n, opt)
}

// freePort returns an address that nobody listens on: below the ports that the
// system gives to those who ask for any.
func freePort(t *testing.T) string {
	t.Helper()
	for range 100 {
		addr := fmt.Sprintf("127.0.0.1:%d", 20000+rand.N(10000))
		l, err := net.Listen("tcp", addr)
		if errors.Is(err, syscall.EADDRINUSE) {
			continue
		}
		require.NoError(t, err)
		require.NoError(t, l.Close())
		return addr
	}
	require.Fail(t, "no free port")
	return ""
}

func endsWell(t *testing.T, g *testproc.Group) {
	t.Helper()
	for _, p := range g.Procs {
		require.Equal(t, "ended: ", p.Next(t), p.Output())
	}
	g.Wait(t)
}
