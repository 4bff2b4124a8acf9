package dist_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl"
	"github.com/goccl/goccl/dist"
	"github.com/goccl/goccl/dist/store"
	processgroup "github.com/goccl/goccl/process_group"
	"github.com/goccl/goccl/process_group/backend"
	"github.com/goccl/goccl/process_group/backend/ccl"
)

// split is an engine of these tests: the library's own, with a memory of how it was
// made and the abilities of one that lies elsewhere.
type split struct {
	*ccl.Backend
	spec   backend.Spec
	satOut chan string // names of groups
}

func (s *split) SitOut(context.Context) error { s.satOut <- s.spec.Name; return nil }

func (s *split) Name() string { return "elsewhere" }

var elsewhere = struct {
	mu     sync.Mutex
	specs  []backend.Spec
	satOut chan string
}{satOut: make(chan string, 16)}

func init() {
	backend.Register("elsewhere", func(ctx context.Context, s backend.Spec) (backend.Engine, error) {
		b, err := ccl.New(ctx, s.ID, ccl.Config{Rank: s.Rank, Size: s.Size, Name: s.Name, Job: s.Job, InProcess: true, Timeout: s.Timeout, Logger: s.Logger})
		if err != nil {
			return nil, err
		}
		elsewhere.mu.Lock()
		defer elsewhere.mu.Unlock()
		elsewhere.specs = append(elsewhere.specs, s)
		return &split{b, s, elsewhere.satOut}, nil
	})
}

func TestRegisteredBackend(t *testing.T) {
	const n = 3
	jobs, err := dist.InitLocal(t.Context(), n, dist.Config{Backend: "elsewhere", Options: map[string]string{"elsewhere.x": "1"}})
	require.NoError(t, err)
	errs := make([]error, n)
	var wg sync.WaitGroup
	for r, j := range jobs {
		wg.Go(func() {
			defer j.Close()
			if name := j.World().Backend(); name != "elsewhere" {
				errs[r] = fmt.Errorf("the world is on %s", name)
				return
			}
			color := r // rank 2 is alone, and rank 1 in none
			if r == 1 {
				color = -1
			}
			g, err := j.Split(t.Context(), j.World(), color, 7)
			if errs[r] = err; err == nil && (g == nil) != (r == 1) {
				errs[r] = fmt.Errorf("group %v", g)
			}
		})
	}
	wg.Wait()
	require.Equal(t, make([]error, n), errs)
	require.Equal(t, "world", <-elsewhere.satOut)
	elsewhere.mu.Lock()
	defer elsewhere.mu.Unlock()
	require.Len(t, elsewhere.specs, n+2)
	for _, s := range elsewhere.specs {
		require.Equal(t, map[string]string{"elsewhere.x": "1"}, s.Options)
		require.Equal(t, strings.Contains(s.Name, "/"), s.Split != nil, s.Name)
		if s.Split != nil {
			require.Equal(t, "elsewhere", s.Split.Parent.Name())
			require.Equal(t, 7, s.Split.Key)
			require.Equal(t, fmt.Sprint("world/", s.Split.Color), s.Name)
		}
	}
}

func TestBackendsThatDiffer(t *testing.T) {
	shared := store.NewMem()
	defer shared.Close()
	errs := make([]error, 2)
	var wg sync.WaitGroup
	for r, name := range []string{"", "elsewhere"} {
		wg.Go(func() {
			_, errs[r] = dist.Init(t.Context(), dist.Config{Identity: &dist.Identity{Rank: r, Size: 2}, Store: shared.Share(), Addr: "127.0.0.1:1",
				Backend: name, Timeout: 30 * time.Second})
		})
	}
	wg.Wait()
	for _, err := range errs {
		require.ErrorContains(t, err, `the backend of group "world": rank 0 says ccl, rank 1 says elsewhere`)
	}
	require.ErrorIs(t, errs[1], goccl.ErrMismatch)
}

func TestExchange(t *testing.T) {
	ok(t, 3, func(ctx context.Context, j *dist.Job) error {
		g := j.World()
		for _, unit := range []string{"", "ab"} {
			all, err := g.Exchange(ctx, []byte(strings.Repeat(unit, g.Rank()))) // rank 0 has nothing to say
			if err != nil {
				return err
			}
			for r, b := range all {
				if string(b) != strings.Repeat(unit, r) {
					return fmt.Errorf("rank %d gave %q", r, b)
				}
			}
		}
		return nil
	})
	for r, err := range each(t, 2, dist.Config{}, func(ctx context.Context, g *processgroup.Group) error {
		_, err := g.Exchange(ctx, make([]byte, (1<<20)*(1+g.Rank())))
		return err
	}) {
		require.ErrorContains(t, err, "exchange of 2097152 bytes", "rank %d", r)
	}
}
