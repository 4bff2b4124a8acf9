package dist

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/goccl/goccl"
	"github.com/goccl/goccl/comm"
	"github.com/goccl/goccl/comm/bootstrap"
	processgroup "github.com/goccl/goccl/process_group"
	"github.com/goccl/goccl/process_group/backend"
	"github.com/goccl/goccl/process_group/backend/ccl"
)

// invitation is what the first rank of a group puts into the store.
type invitation struct {
	ID    comm.UniqueID `json:"id"`
	Ranks []int         `json:"ranks"`
	// Backend is what the ranks must agree on before they meet: each backend says
	// other things at a meeting.
	Backend string `json:"backend"`
}

// draft is a group that is being made.
type draft struct {
	name  string
	key   string // under which its ranks meet
	ranks []int  // of the job
	me    int    // index of this rank in ranks
	split *backend.Split
}

// form makes the group of ranks, one of which is this one, and returns when all
// of them have called it. key is equal on them and used once. split says out of
// which group it is made, nil for none.
func (j *Job) form(ctx context.Context, name, key string, ranks []int, split *backend.Split) (*Group, error) {
	d := draft{name: name, key: key, ranks: ranks, me: slices.Index(ranks, j.Rank()), split: split}
	ctx, cancel := context.WithTimeout(ctx, j.cfg.Timeout)
	defer cancel()
	var id comm.UniqueID
	var err error
	if len(ranks) > 1 {
		if id, err = j.meet(ctx, d); err != nil {
			return nil, err
		}
	}
	b, err := j.engine(ctx, id, d)
	if err != nil {
		if len(ranks) > 1 {
			j.excuse(id, d, err)
		}
		return nil, err
	}
	if d.me == 0 && len(ranks) > 1 {
		// All have read it. What stays for a failed delete is an id nobody uses.
		if _, err := j.store.Delete(ctx, key+"/id"); err != nil {
			j.cfg.Logger.Info("unique id stays in the store", "group", name, "err", err)
		}
	}
	var used processgroup.Backend = b
	if j.cfg.Wrap != nil {
		used = j.cfg.Wrap(name, d.me, b)
	}
	control := j.control(b)
	g := processgroup.New(processgroup.Config{Job: j.cfg.Job, Name: name, Rank: d.me, Size: len(ranks), GlobalRanks: ranks, Backend: used,
		Control: control, Timeout: j.cfg.Timeout, Logger: j.cfg.Logger, DumpDir: j.cfg.DumpDir})
	if s, ok := control.(*subject); ok {
		context.AfterFunc(g.Context(), s.release)
	}
	if !j.own(g, origin{key, b}) {
		return nil, errors.Join(j.tooLate(name), g.Close())
	}
	return g, nil
}

// own makes g one of the groups that Close closes; false when it has begun.
func (j *Job) own(g *Group, from origin) bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.over {
		return false
	}
	j.groups = slices.DeleteFunc(j.groups, func(old *Group) bool {
		closed := errors.Is(context.Cause(old.Context()), goccl.ErrClosed)
		if closed {
			delete(j.origins, old)
		}
		return closed
	})
	j.groups = append(j.groups, g)
	j.origins[g] = from
	return true
}

// tooLate is the error of a group that a closed job should make.
func (j *Job) tooLate(name string) error {
	e := goccl.NewError("new", goccl.ErrClosed)
	e.Rank, e.Group, e.Hint = j.Rank(), name, "the job is closed"
	return e
}

// engine makes what moves the data of d, whose ranks meet at id.
func (j *Job) engine(ctx context.Context, id comm.UniqueID, d draft) (backend.Engine, error) {
	if j.cfg.own() {
		b, err := ccl.New(ctx, id, j.ccl(d))
		if err != nil { // not b: a nil *Backend is no nil Engine
			return nil, err
		}
		return b, nil
	}
	make, err := backend.Find(j.cfg.Backend)
	if err != nil {
		return nil, err
	}
	return make(ctx, backend.Spec{ID: id, Rank: d.me, Size: len(d.ranks), Name: d.name, Job: j.cfg.Job, Device: j.cfg.Device,
		Options: j.cfg.Options, Timeout: j.cfg.Timeout, Logger: j.cfg.Logger, Split: d.split})
}

// ccl is what the library's own backend needs for d.
func (j *Job) ccl(d draft) ccl.Config {
	t, tr := j.cfg.Tuning, j.cfg.Transport
	cfg := ccl.Config{Rank: d.me, Size: len(d.ranks), Name: d.name, Job: j.cfg.Job, Settings: t.settings(), HostID: tr.HostID,
		NoShm: tr.NoShm, InProcess: j.local, Device: j.cfg.Device, ShareDevice: j.cfg.ShareDevice, Decorate: tr.Decorate, Timeout: j.cfg.Timeout, Logger: j.cfg.Logger,
		Force: ccl.Force{Algorithm: t.Algorithm, Protocol: t.Protocol, MaxChannels: t.MaxChannels, ChunkBytes: t.ChunkBytes}}
	cfg.Tuner = t.Tuner
	if t.Deterministic {
		cfg.Tuner = comm.DefaultTuner()
	}
	if !j.local {
		cfg.Socket = j.sockets()
	}
	return cfg
}

// meet exchanges the unique id: the group's first rank makes it, the others wait
// for it.
func (j *Job) meet(ctx context.Context, d draft) (comm.UniqueID, error) {
	if d.me == 0 {
		return j.invite(ctx, d)
	}
	if _, err := j.store.Add(ctx, d.signature(d.me), 1); err != nil {
		return comm.UniqueID{}, fmt.Errorf("goccl: rank %d: join group %q: %w", j.Rank(), d.name, err)
	}
	text, err := j.store.Get(ctx, d.key+"/id")
	if err != nil {
		return comm.UniqueID{}, j.uninvited(ctx, d, err)
	}
	var in invitation
	if err := json.Unmarshal(text, &in); err != nil {
		return comm.UniqueID{}, fmt.Errorf("goccl: rank %d: join group %q: %w: what rank %d left in the store is no invitation: %w", j.Rank(), d.name, goccl.ErrInvalid, d.ranks[0], err)
	}
	var what string
	switch own := j.cfg.backendName(); {
	case !slices.Equal(in.Ranks, d.ranks):
		what = fmt.Sprintf("who is in group %q: rank %d says %s, rank %d says %s; all ranks must make the same groups in the same order",
			d.name, d.ranks[0], goccl.Ranks(in.Ranks), j.Rank(), goccl.Ranks(d.ranks))
	case in.Backend != own:
		what = fmt.Sprintf("the backend of group %q: rank %d says %s, rank %d says %s; set GOCCL_BACKEND or Config.Backend the same everywhere",
			d.name, d.ranks[0], in.Backend, j.Rank(), own)
	default:
		return in.ID, nil
	}
	e := goccl.NewError("join", goccl.ErrMismatch)
	e.Rank, e.Peer, e.Group, e.Sentence = j.Rank(), d.ranks[0], d.name, "goccl: ranks disagree on "+what
	j.excuse(in.ID, draft{name: d.name, ranks: in.Ranks, me: slices.Index(in.Ranks, j.Rank())}, e)
	return comm.UniqueID{}, e
}

func (d draft) signature(r int) string { return fmt.Sprintf("%s/in/%d", d.key, d.ranks[r]) }

// invite opens the rendezvous and publishes it.
func (j *Job) invite(ctx context.Context, d draft) (comm.UniqueID, error) {
	root, err := j.open(ctx, bootstrap.RootOptions{Size: len(d.ranks), Job: j.cfg.Job, Linger: j.cfg.Timeout, Logger: j.cfg.Logger})
	if err != nil {
		return comm.UniqueID{}, fmt.Errorf("goccl: rank %d: open the rendezvous of group %q: %w", j.Rank(), d.name, err)
	}
	if !j.serve(ctx, root, d.name) {
		return comm.UniqueID{}, errors.Join(j.tooLate(d.name), root.Close())
	}
	text, err := json.Marshal(invitation{ID: root.ID(), Ranks: d.ranks, Backend: j.cfg.backendName()})
	if err == nil {
		err = j.store.Set(ctx, d.key+"/id", text)
	}
	if err != nil {
		return comm.UniqueID{}, fmt.Errorf("goccl: rank %d: publish the rendezvous of group %q: %w", j.Rank(), d.name, err)
	}
	return root.ID(), nil
}

// serve runs a rendezvous until its ranks have left it; ctx bounds their joining.
// It returns false when Close has begun, which waits for those that run.
func (j *Job) serve(ctx context.Context, root *comm.Root, group string) bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.over {
		return false
	}
	j.roots = append(j.roots, root)
	deadline, _ := ctx.Deadline()
	j.serves.Go(func() {
		joining, cancel := context.WithDeadline(context.Background(), deadline)
		defer cancel()
		if err := root.Serve(joining); err != nil {
			j.cfg.Logger.Info("rendezvous ended", "group", group, "err", err)
		}
		j.mu.Lock()
		j.roots = slices.DeleteFunc(j.roots, func(r *comm.Root) bool { return r == root })
		j.mu.Unlock()
		if err := root.Close(); err != nil {
			j.cfg.Logger.Info("rendezvous not closed", "group", group, "err", err)
		}
	})
	return true
}

// uninvited is the error of a rank that waited in vain for the group's first
// rank. It names all that have not come.
func (j *Job) uninvited(ctx context.Context, d draft, why error) error {
	e := goccl.NewError("join", why)
	e.Rank, e.Group, e.Missing = j.Rank(), d.name, []int{d.ranks[0]}
	if errors.Is(why, goccl.ErrTimeout) {
		e.Err = fmt.Errorf("%w after %v", goccl.ErrTimeout, j.cfg.Timeout)
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
	defer cancel()
	for r := 1; r < len(d.ranks); r++ {
		if n, err := j.store.Add(ctx, d.signature(r), 0); err == nil && n == 0 {
			e.Missing = append(e.Missing, d.ranks[r])
		}
	}
	e.Hint = fmt.Sprintf("all ranks of the group must make it; see the log of rank %d", d.ranks[0])
	return e
}

// excuse tells the ranks that are still joining why this one does not. A root that
// has given up already needs no excuse, so nothing comes of an error here.
func (j *Job) excuse(id comm.UniqueID, d draft, why error) {
	if d.me < 0 {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	err := bootstrap.FailJoin(ctx, id, bootstrap.Config{Rank: d.me, Size: len(d.ranks), Job: j.cfg.Job, Logger: j.cfg.Logger}, why.Error())
	if err != nil {
		j.cfg.Logger.Info("other ranks may not know why this one does not join", "group", d.name, "err", err)
	}
}
