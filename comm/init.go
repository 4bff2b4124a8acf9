package comm

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/goccl/goccl"
	"github.com/goccl/goccl/comm/bootstrap"
	"github.com/goccl/goccl/comm/exec"
	"github.com/goccl/goccl/comm/graph"
	"github.com/goccl/goccl/comm/plan"
	"github.com/goccl/goccl/comm/transport"
	"github.com/goccl/goccl/internal/spin"
)

// Version is what ranks of one communicator must agree on: it changes with the
// layout of anything they share.
const Version = 1

// process is random and the same for all ranks of this process: it tells them
// from another process, also one with an equal pid in another namespace.
var process = sync.OnceValue(func() uint64 {
	var b [8]byte
	if _, err := rand.Read(b[:]); err != nil {
		return uint64(time.Now().UnixNano())
	}
	return binary.LittleEndian.Uint64(b[:])
})

// hello is what a rank tells the others when a communicator forms.
type hello struct {
	Version  int               `json:"version"`
	Peer     transport.Peer    `json:"peer"`
	Settings map[string]string `json:"settings,omitempty"`
	Cores    int               `json:"cores"` // what this rank can use of them
}

// Init joins the communicator that id names and blocks until all ranks have. An
// error names the ranks that are missing or that disagree.
func Init(ctx context.Context, id UniqueID, cfg Config) (*Communicator, error) {
	c, err := fresh(cfg)
	if err != nil {
		if cfg.Accelerator != nil {
			err = errors.Join(err, cfg.Accelerator.Close())
		}
		return nil, err
	}
	if cfg.Size == 1 {
		return c, c.alone()
	}
	ctx, cancel := context.WithTimeout(ctx, c.timeout)
	defer cancel()
	if err := c.join(ctx, id, cfg); err != nil {
		return nil, errors.Join(err, c.undo())
	}
	c.spawnRunner()
	return c, nil
}

// fresh checks cfg and makes the parts that need nobody else.
func fresh(cfg Config) (*Communicator, error) {
	if cfg.Size < 1 || cfg.Rank < 0 || cfg.Rank >= cfg.Size {
		e := goccl.NewError("init", fmt.Errorf("%w: rank %d is not below world size %d", goccl.ErrInvalid, cfg.Rank, cfg.Size))
		return nil, e
	}
	if cfg.Size > 1 && len(cfg.Transports) == 0 {
		return nil, goccl.NewError("init", fmt.Errorf("%w: no transports for %d ranks", goccl.ErrInvalid, cfg.Size))
	}
	c := &Communicator{identity: identity{rank: cfg.Rank, size: cfg.Size, name: cfg.Name, tuner: cfg.Tuner, timeout: cfg.Timeout,
		noTimeout: cfg.NoTimeout, log: cfg.Logger}}
	if c.name == "" {
		c.name = "comm"
	}
	if c.tuner == nil {
		c.tuner = thresholds{}
	}
	if c.timeout <= 0 {
		c.timeout = defaultTimeout
	}
	if c.log == nil {
		c.log = slog.New(slog.DiscardHandler)
	}
	c.life, c.endLife = context.WithCancelCause(context.Background())
	c.failedC, c.linked, c.left = make(chan struct{}), make(chan struct{}), map[int]time.Time{}
	c.kick, c.stop, c.stopped = make(chan struct{}, 1), make(chan struct{}), make(chan struct{})
	c.programs = map[plan.Key]*exec.Bound{}
	c.busy = make([]bool, 1+2*cfg.Size)
	c.acc = cfg.Accelerator
	c.windows.rank = cfg.Rank
	return c, nil
}

// alone completes a communicator of one rank: no session, no memory to share.
func (c *Communicator) alone() error {
	g, err := graph.New(make([]graph.Place, 1))
	if err != nil {
		return err
	}
	c.graph, c.hosts, c.peers = g, 1, []transport.Peer{{PID: os.Getpid(), Process: process()}}
	c.crowd = crowd{ranks: 1, cores: spin.Cores(), inProcess: true}
	c.exec = exec.New(exec.Config{Size: 1})
	c.waiter.Policy = spin.Policy{Local: true}
	c.spawnRunner()
	if c.acc != nil {
		if err := c.aloneOnDevice(); err != nil {
			return errors.Join(err, c.Close())
		}
	}
	return nil
}

func (c *Communicator) spawnRunner() { go c.run() }

// join meets the other ranks and sets up what all of them share.
func (c *Communicator) join(ctx context.Context, id UniqueID, cfg Config) error {
	self, err := c.describeSelf(cfg)
	if err != nil {
		return err
	}
	info, err := json.Marshal(hello{Version: Version, Peer: self, Settings: cfg.Settings, Cores: spin.Cores()})
	if err != nil {
		return err
	}
	// Events may arrive before join returns; they need the session's peers only
	// for words, which onEvent takes from the event.
	c.session, err = bootstrap.Join(ctx, id, bootstrap.Config{Rank: c.rank, Size: c.size, Info: info, Job: cfg.Job, Timeout: c.timeout,
		Logger: c.log, Status: c.status, OnEvent: c.onEvent, OnMessage: c.onMessage})
	if err != nil {
		return err
	}
	if err := c.meet(); err != nil {
		c.Fail(err)
		return err
	}
	c.links = &links{self: c.rank, peers: c.peers, ts: cfg.Transports, session: c.session, life: c.life, log: c.log, patience: 2 * c.timeout,
		sends: map[link]transport.SendSide{}, recvs: map[link]transport.RecvSide{}}
	if err := c.settle(ctx, cfg); err != nil {
		return err
	}
	if err := c.meetOnDevice(); err != nil {
		c.Fail(err)
		return err
	}
	close(c.linked) // from now on other ranks may ask for connections
	return nil
}

func (c *Communicator) describeSelf(cfg Config) (transport.Peer, error) {
	host, err := os.Hostname()
	if err != nil {
		host = "unknown"
	}
	p := transport.Peer{Rank: c.rank, Host: host, HostID: cfg.Host, PID: os.Getpid(), Process: process(), Blob: map[string][]byte{}}
	if c.acc != nil {
		b, err := c.acc.Announce()
		if err != nil {
			return p, fmt.Errorf("%v: %w", c.acc.Device().ID(), err)
		}
		p.Blob[announced] = b
	}
	for _, t := range cfg.Transports {
		b, err := t.Announce()
		if err != nil {
			return p, fmt.Errorf("transport %s: %w", t.Name(), err)
		}
		if b != nil {
			p.Blob[t.Name()] = b
		}
		if t.Name() == "shm" {
			p.Shm = true
		}
	}
	return p, nil
}

// meet reads what the ranks said and refuses a disagreement by name.
func (c *Communicator) meet() error {
	values := map[string]map[string][]int{} // setting → value → ranks
	for r, p := range c.session.Peers() {
		var h hello
		if err := json.Unmarshal(p.Info, &h); err != nil {
			return fmt.Errorf("%w: rank %d said something unreadable: %w", goccl.ErrInvalid, r, err)
		}
		if h.Version != Version {
			return fmt.Errorf("%w: rank %d (host %s, pid %d) speaks version %d, rank %d version %d: use one release everywhere", goccl.ErrMismatch, r, p.Host, p.PID, h.Version, c.rank, Version)
		}
		h.Peer.Rank = r
		c.peers = append(c.peers, h.Peer)
		if h.Cores = max(h.Cores, 1); r == 0 || h.Cores < c.crowd.cores {
			c.crowd.cores = h.Cores
		}
		for k, v := range h.Settings {
			if values[k] == nil {
				values[k] = map[string][]int{}
			}
			values[k][v] = append(values[k][v], r)
		}
	}
	return c.agree(values)
}

// agree refuses a setting that differs between ranks, or that only some have.
func (c *Communicator) agree(values map[string]map[string][]int) error {
	for _, k := range slices.Sorted(maps.Keys(values)) {
		with := values[k]
		var have []int
		var said []string
		for _, v := range slices.Sorted(maps.Keys(with)) {
			slices.Sort(with[v])
			have = append(have, with[v]...)
			said = append(said, fmt.Sprintf("%q on %s", v, goccl.Ranks(with[v])))
		}
		if len(have) < c.size {
			var without []int
			for r := range c.size {
				if !slices.Contains(have, r) {
					without = append(without, r)
				}
			}
			said = append(said, fmt.Sprintf("not set on %s", goccl.Ranks(without)))
		}
		if len(said) > 1 {
			e := goccl.NewError("init", goccl.ErrMismatch)
			e.Sentence = fmt.Sprintf("goccl: ranks disagree on %s: %s; set it the same everywhere", k, strings.Join(said, ", "))
			return e
		}
	}
	return nil
}

// settle decides the shape and shares memory where all ranks can.
func (c *Communicator) settle(ctx context.Context, cfg Config) error {
	c.layout = exec.Layout{Ranks: c.size, SlotBytes: exec.ScratchSlot(c.size)}
	c.mapper = c.commonMapper(cfg.Transports)
	if c.mapper != nil {
		parts, err := c.share(ctx, c.mapper, c.layout.Bytes())
		if err != nil {
			if ctx.Err() != nil || c.failed.Load() != nil {
				return err
			}
			if cfg.HostGiven {
				e := goccl.NewError("init", fmt.Errorf("%w: %w", goccl.ErrMismatch, err))
				e.Rank, e.Group = c.rank, c.name
				e.Hint = "ranks were given one host id but do not share memory: set GOCCL_HOSTID apart, or not at all"
				return e
			}
			c.log.Warn("ranks of one host do not share memory; data takes the network", "rank", c.rank, "why", err)
			c.mapper = nil
			for r := range c.peers { // the same on all ranks, which fail together
				c.peers[r].Shm = false
			}
		}
		c.regions = parts
	}
	places, hosts := make([]graph.Place, c.size), map[uint64]int{}
	c.crowd.inProcess = true
	for r, p := range c.peers {
		places[r] = graph.Place{Host: hostOf(&p), Mapped: c.mapper != nil}
		hosts[places[r].Host]++
		c.crowd.ranks = max(c.crowd.ranks, hosts[places[r].Host])
		c.crowd.inProcess = c.crowd.inProcess && p.Process == process()
	}
	local := hosts[hostOf(&c.peers[c.rank])]
	var err error
	if c.graph, err = graph.New(places); err != nil {
		return err
	}
	c.hosts = len(hosts)
	ec := exec.Config{Rank: c.rank, Size: c.size, Layout: c.layout, Windows: &c.windows}
	c.waiter.Policy = spin.Policy{Local: c.crowd.inProcess, Oversubscribed: local > spin.Cores(), Network: c.mapper == nil}
	for _, s := range c.regions {
		ec.Regions = append(ec.Regions, s.Mem())
		ec.Bells = append(ec.Bells, exec.Bell(s.Mem()))
	}
	if ec.Bells != nil {
		c.bell.Store(ec.Bells[c.rank])
	}
	c.exec = exec.New(ec)
	return nil
}

// hostOf is a number that two ranks share when they run on one host, as far as
// is known: without an identity a process is a host of its own.
func hostOf(p *transport.Peer) uint64 {
	if p.HostID != 0 {
		return p.HostID
	}
	return p.Process
}

// commonMapper returns the first transport that shares memory between all ranks;
// nil when none does. Every rank finds the same one.
func (c *Communicator) commonMapper(ts []transport.Transport) transport.Mapper {
	for _, t := range ts {
		m, ok := t.(transport.Mapper)
		if !ok {
			continue
		}
		all := true
		for a := range c.peers {
			for b := range c.peers {
				all = all && (a == b || t.CanConnect(&c.peers[a], &c.peers[b]) == nil)
			}
		}
		if all {
			return m
		}
	}
	return nil
}

// undo frees what a failed Init has made.
func (c *Communicator) undo() error {
	c.adopt(goccl.ErrClosed)
	var err error
	if c.session != nil {
		err = c.session.Close()
	}
	c.owned.wait()
	return errors.Join(err, closeAll(c.regions), c.freeDevice())
}

// InitAll makes a communicator of n ranks in this process, and returns its ends
// by rank. configure, which may be nil, completes the Config of each rank.
func InitAll(ctx context.Context, n int, configure func(rank int, cfg *Config)) ([]*Communicator, error) {
	root, err := ListenLocal(RootOptions{Size: n})
	if err != nil {
		return nil, err
	}
	serving := make(chan error, 1)
	go func() { serving <- root.Serve(ctx) }()
	cs, errs := make([]*Communicator, n), make([]error, n)
	var wg sync.WaitGroup
	for r := range n {
		cfg := Config{Rank: r, Size: n}
		if configure != nil {
			configure(r, &cfg)
		}
		wg.Add(1)
		go func() {
			defer wg.Done()
			cs[r], errs[r] = Init(ctx, root.ID(), cfg)
		}()
	}
	wg.Wait()
	if err := errors.Join(errs...); err != nil {
		for _, c := range cs {
			if c != nil {
				err = errors.Join(err, c.Close())
			}
		}
		return nil, errors.Join(err, root.Close())
	}
	return cs, nil
}
