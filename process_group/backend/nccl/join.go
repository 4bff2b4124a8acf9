package nccl

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/goccl/goccl"
	"github.com/goccl/goccl/comm/bootstrap"
	"github.com/goccl/goccl/device/cuda"
	"github.com/goccl/goccl/process_group/backend/nccl/libnccl"
)

// The stages of forming, which a rank tells when it is asked.
const (
	stageMeeting int32 = iota // our own ranks
	stageInit                 // inside NCCL
	stageReady
)

// hello is what a rank tells the others when a group forms.
type hello struct {
	Version  int    `json:"version"` // of NCCL
	GPU      string `json:"gpu"`     // its UUID
	Device   string `json:"device"`  // as the rank calls it
	Settings string `json:"settings,omitempty"`
}

// New makes this rank part of the group that meets at id, and returns the backend
// when all ranks have come and NCCL has connected them, bounded by ctx and
// cfg.Timeout. Errors name the ranks that are missing or that disagree, and how to
// get the library where it is missing. A group of one needs no id.
func New(ctx context.Context, id bootstrap.UniqueID, cfg Config) (*Backend, error) {
	return form(ctx, id, cfg, nil)
}

// Split is New for a group within the group of parent, from which it takes what it
// can share: all ranks of parent call Split at the same time, with nothing under
// way. Ranks that give the same color, of 0 or more, meet at id, ordered by key and
// then by their rank in parent; cfg.Rank and cfg.Size say so too. SitOut is the call
// for a rank that is in none of the groups.
func Split(ctx context.Context, parent *Backend, color, key int, id bootstrap.UniqueID, cfg Config) (*Backend, error) {
	if color < 0 {
		return nil, fmt.Errorf("%w: color %d; a rank without a group calls SitOut", goccl.ErrInvalid, color)
	}
	if cfg.Device == nil {
		cfg.Device = parent.cfg.Device
	}
	return form(ctx, id, cfg, &descent{parent, color, key})
}

// descent says out of which group another is made.
type descent struct {
	parent     *Backend
	color, key int
}

func form(ctx context.Context, id bootstrap.UniqueID, cfg Config, from *descent) (*Backend, error) {
	dev, err := cfg.fill()
	if err != nil {
		return nil, err
	}
	b := &Backend{cfg: cfg, words: translator{rank: cfg.Rank, size: cfg.Size, id: dev.ID()}}
	if from != nil {
		b.lib = from.parent.lib
	} else if b.lib, err = libnccl.Open(cfg.Library); err != nil {
		return nil, err
	}
	who := member{group: cfg.Name, rank: cfg.Rank, size: cfg.Size}
	b.control = newControl(who, new(callLog))
	ctx, cancel := context.WithTimeout(ctx, cfg.Timeout)
	defer cancel()
	if err := b.control.meet(ctx, id, cfg, hello{Version: int(b.lib.Version()), GPU: dev.Info().UUID.String(), Device: dev.ID().String(),
		Settings: cfg.Settings.String()}); err != nil {
		return nil, errors.Join(err, b.control.close())
	}
	if err := b.connect(ctx, dev, from); err != nil {
		return nil, errors.Join(b.control.Decide(err), b.control.close()) // the others wait inside NCCL
	}
	b.control.stage.Store(stageReady)
	if cfg.Rank == 0 && cfg.Size > 1 {
		b.control.spawn(b.control.audit)
	}
	return b, nil
}

// meet joins the session and compares what the ranks say.
func (c *control) meet(ctx context.Context, id bootstrap.UniqueID, cfg Config, self hello) error {
	if cfg.Size == 1 {
		return nil
	}
	info, err := json.Marshal(self)
	if err != nil {
		return err
	}
	c.session, err = bootstrap.Join(ctx, id, bootstrap.Config{Rank: cfg.Rank, Size: cfg.Size, Info: info, Job: cfg.Job, Timeout: cfg.Timeout,
		Logger: cfg.Logger, Status: func() []byte { return c.log.report(c.stage.Load()).encode() }, OnEvent: c.event, OnMessage: c.message})
	if err != nil {
		return err
	}
	all := make([]hello, cfg.Size)
	for r, p := range c.session.Peers() {
		if err := json.Unmarshal(p.Info, &all[r]); err != nil {
			return fmt.Errorf("%w: rank %d said something unreadable: %w", goccl.ErrInvalid, r, err)
		}
	}
	if err := c.agree(all); err != nil {
		c.Fail(err)
		return err
	}
	return nil
}

// agree refuses by name what NCCL refuses without saying which ranks.
func (c *control) agree(all []hello) error {
	at := map[string]int{}
	for r, h := range all {
		var what string
		other := 0
		if first, taken := at[h.GPU]; taken {
			other = first
			what = fmt.Sprintf("ranks %d and %d are on one GPU (%s, %s): give each rank its own, by LOCAL_RANK", first, r, h.Device, h.GPU)
		} else if h.Version/100 != all[0].Version/100 {
			what = fmt.Sprintf("rank 0 has NCCL %v and rank %d has %v: install one version everywhere",
				libnccl.Version(all[0].Version), r, libnccl.Version(h.Version))
		} else if h.Settings != all[0].Settings {
			what = fmt.Sprintf("ranks disagree on NCCL's settings: rank 0 has %q, rank %d has %q; set them the same everywhere",
				all[0].Settings, r, h.Settings)
		}
		at[h.GPU] = r
		if what != "" {
			e := goccl.NewError("init", goccl.ErrMismatch)
			e.Rank, e.Peer, e.Group = c.who.rank, other, c.who.group
			e.Sentence = fmt.Sprintf("goccl: init of group %q on NCCL: %s", c.who.group, what)
			return e
		}
	}
	return nil
}

// connect has NCCL connect the ranks and makes what operations need.
func (b *Backend) connect(ctx context.Context, dev *cuda.Device, from *descent) error {
	first, _, err := dev.Priorities()
	if err != nil {
		return err
	}
	g := &gpu{dev: dev, onCaller: b.cfg.OnCaller, blocking: b.cfg.Blocking}
	if g.own, err = dev.Stream(first); err != nil {
		return err
	}
	b.gpu = g
	if b.word, err = dev.Alloc(256); err == nil {
		b.words.word = b.word.Addr()
		err = b.initiate(ctx, from)
	}
	if err != nil {
		g.free()
		if b.word != nil {
			err = errors.Join(err, b.word.Free())
		}
		return err
	}
	b.engine = newEngine(g, b.control.who, b.cfg.Logger)
	return nil
}

// initiate makes the communicator.
func (b *Backend) initiate(ctx context.Context, from *descent) error {
	settings := b.cfg.settings(b.lib.Version())
	if from != nil {
		b.control.stage.Store(stageInit)
		return b.await(ctx, func() (*libnccl.Comm, libnccl.Result, error) {
			c, err := from.split(settings)
			return c, libnccl.Success, err // the parent is done with it
		})
	}
	id, err := b.shareID(ctx)
	if err != nil {
		return err
	}
	b.control.stage.Store(stageInit)
	return b.await(ctx, func() (c *libnccl.Comm, r libnccl.Result, err error) {
		err = b.gpu.current(func() error {
			c, r, err = b.lib.Init(b.cfg.Size, id, b.cfg.Rank, settings)
			return err
		})
		return c, r, err
	})
}

// shareID has rank 0 make NCCL's id and hands it to all.
func (b *Backend) shareID(ctx context.Context) (libnccl.UniqueID, error) {
	var mine []byte
	var failed error
	if b.cfg.Rank == 0 {
		id, err := b.lib.UniqueID()
		if failed = err; err == nil {
			mine = id[:]
		}
	}
	if failed != nil {
		return libnccl.UniqueID{}, failed
	}
	parts, err := b.control.exchange(ctx, mine)
	if err != nil {
		return libnccl.UniqueID{}, err
	}
	if len(parts[0]) != len(libnccl.UniqueID{}) {
		return libnccl.UniqueID{}, fmt.Errorf("%w: rank 0 sent %d bytes for NCCL's id", goccl.ErrMismatch, len(parts[0]))
	}
	return libnccl.UniqueID(parts[0]), nil
}

// await runs begin, which blocks or starts the making of a communicator, and waits
// for its end, for ctx, and for the failure of another rank. When it gives up, a
// communicator in the making is aborted; a begin that still blocks is left to
// itself.
func (b *Backend) await(ctx context.Context, begin func() (*libnccl.Comm, libnccl.Result, error)) error {
	type begun struct {
		comm *libnccl.Comm
		r    libnccl.Result
		err  error
	}
	ch := make(chan begun, 1)
	go func() {
		c, r, err := begin()
		ch <- begun{c, r, err}
	}()
	var x begun
	select {
	case x = <-ch:
	case <-ctx.Done():
		return b.tooLate(ctx)
	case <-b.control.failed:
		return b.control.err()
	}
	if x.err != nil {
		return x.err
	}
	b.gpu.comm = x.comm
	for x.r == libnccl.InProgress {
		var err error
		if x.r, err = b.gpu.state(); err != nil {
			return errors.Join(err, b.giveUp())
		}
		select {
		case <-ctx.Done():
			return errors.Join(b.tooLate(ctx), b.giveUp())
		case <-b.control.failed:
			return errors.Join(b.control.err(), b.giveUp())
		case <-time.After(time.Millisecond):
		}
	}
	return nil
}

// giveUp frees a communicator that is being made.
func (b *Backend) giveUp() error {
	err, over := within(abortLimit, b.gpu.abort)
	if !over {
		b.cfg.Logger.Error("NCCL's abort does not end", "after", abortLimit)
	}
	return err
}

// tooLate says who is not yet connected.
func (b *Backend) tooLate(ctx context.Context) error {
	e := goccl.NewError("init", context.Cause(ctx))
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		e.Err = fmt.Errorf("%w after %v", goccl.ErrTimeout, b.cfg.Timeout)
	}
	e.Group, e.Rank, e.Transport = b.cfg.Name, b.cfg.Rank, "nccl"
	if b.control.session != nil {
		ask, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
		defer cancel()
		reports := b.control.ask(ask)
		for r := range b.cfg.Size {
			if rep, ok := reports[r]; !ok || rep.Stage < stageInit {
				e.Missing = append(e.Missing, r)
			}
		}
	}
	e.Hint = "these ranks did not begin NCCL's init"
	if e.Missing == nil {
		e.Hint = "all ranks have met, but NCCL's own connections do not come up: look at NCCL_SOCKET_IFNAME and firewalls; NCCL_DEBUG=INFO shows each step"
	}
	return e
}

// split is this rank's part in a split of the parent. It returns when that has the
// communicator, which only then may be asked anything.
func (d *descent) split(settings libnccl.Config) (c *libnccl.Comm, err error) {
	p := d.parent
	ctx, cancel := context.WithTimeout(context.Background(), p.cfg.Timeout)
	defer cancel()
	if err := p.gpu.own.Sync(ctx); err != nil { // NCCL wants nothing under way
		return nil, err
	}
	err = p.exclusively(func() error {
		err := p.command(func(parent *libnccl.Comm) (err error) {
			c, err = parent.Split(d.color, d.key, settings)
			return err
		})
		if err == nil && d.color >= 0 && !c.Made() {
			err = fmt.Errorf("%w: ncclCommSplit ended without a communicator", goccl.ErrUnsupported)
		}
		return err
	})
	return c, err
}

// SitOut is the part in a Split of the group of b for a rank that is in none of the
// groups. It blocks until the others have called Split.
func (b *Backend) SitOut(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, b.cfg.Timeout)
	defer cancel()
	d := descent{parent: b, color: libnccl.NoColor}
	done := make(chan error, 1)
	go func() {
		_, err := d.split(b.cfg.settings(b.lib.Version()))
		done <- err
	}()
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
		return fmt.Errorf("sit out a split of group %q: %w", b.cfg.Name, context.Cause(ctx))
	}
}
