package pgtest

import (
	"context"
	"fmt"
	"sync"
	"testing"

	"github.com/goccl/goccl"
	"github.com/goccl/goccl/device"
	processgroup "github.com/goccl/goccl/process_group"
)

// Device is a device whose memory the host can fill and look at, as those of
// package device/cuda are.
type Device interface {
	device.Device
	Write(ctx context.Context, dst uintptr, p []byte) error
	Read(ctx context.Context, p []byte, src uintptr) error
}

// memory is where the buffers of a row lie: on one device for each rank. A nil
// memory is the host's. What a case makes lives until reset.
type memory struct {
	ranks []*arena
}

// mirror is host memory and what lies in its place on a device.
type mirror struct {
	host  []byte
	dev   uintptr
	ahead bool // the device may have written it
}

// arena is the memory of one rank. It is safe for concurrent use.
type arena struct {
	dev Device

	mu      sync.Mutex
	blocks  []device.Memory
	used    int // of the last block
	mirrors []*mirror
}

// blockBytes is the least that is asked of a device at once, and alignment what
// buffers begin at.
const (
	blockBytes = 64 << 20
	alignment  = 512
)

func newMemory(devs []Device) *memory {
	if len(devs) == 0 {
		return nil
	}
	m := &memory{}
	for _, d := range devs {
		m.ranks = append(m.ranks, &arena{dev: d})
	}
	return m
}

// alloc returns the address of bytes that begin skew bytes behind an aligned one.
func (a *arena) alloc(bytes, skew int) (uintptr, error) {
	need := (bytes + skew + alignment - 1) / alignment * alignment
	if len(a.blocks) == 0 || a.used+need > a.blocks[len(a.blocks)-1].Bytes() {
		b, err := a.dev.Alloc(max(need, blockBytes))
		if err != nil {
			return 0, err
		}
		a.blocks, a.used = append(a.blocks, b), 0
	}
	at := a.blocks[len(a.blocks)-1].Addr() + uintptr(a.used+skew)
	a.used += need
	return at, nil
}

// put copies host to the device and returns its mirror there. Memory that was put
// before keeps its place.
func (a *arena) put(host []byte, skew int) *mirror {
	a.mu.Lock()
	defer a.mu.Unlock()
	m := a.find(host)
	if m == nil {
		at, err := a.alloc(len(host), skew)
		if err != nil {
			panic(fmt.Sprintf("pgtest: %d bytes on %v: %v", len(host), a.dev.ID(), err)) // panic: a test cannot go on without memory
		}
		m = &mirror{host: host, dev: at}
		a.mirrors = append(a.mirrors, m)
	}
	a.move(func(ctx context.Context) error { return a.dev.Write(ctx, m.dev, host) })
	m.ahead = true
	return m
}

// find returns the mirror of exactly this memory.
func (a *arena) find(host []byte) *mirror {
	for _, m := range a.mirrors {
		if len(m.host) == len(host) && &m.host[0] == &host[0] {
			return m
		}
	}
	return nil
}

// get copies to the host what may have changed within host.
func (a *arena) get(host []byte) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, m := range a.mirrors {
		if m.ahead && within(m.host, host) {
			a.move(func(ctx context.Context) error { return a.dev.Read(ctx, m.host, m.dev) })
		}
	}
}

// within reports whether part lies in whole, both of which are not empty.
func within(part, whole []byte) bool {
	p, w := device.SliceOf(part), device.SliceOf(whole)
	return p.Addr >= w.Addr && p.Addr+uintptr(p.Count) <= w.Addr+uintptr(w.Count)
}

func (a *arena) move(fn func(ctx context.Context) error) {
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	if err := fn(ctx); err != nil {
		panic(fmt.Sprintf("pgtest: copy to or from %v: %v", a.dev.ID(), err)) // panic: a test cannot go on without its values
	}
}

// reset makes all memory free to be used again. No operation may be under way.
func (m *memory) reset() {
	if m == nil {
		return
	}
	for _, a := range m.ranks {
		a.mu.Lock()
		a.mirrors, a.used = nil, 0
		if n := len(a.blocks); n > 1 { // the last is the largest that was needed at once
			for _, b := range a.blocks[:n-1] {
				_ = b.Free() // told by the device's Close
			}
			a.blocks = a.blocks[n-1:]
		}
		a.mu.Unlock()
	}
}

// free gives all memory back.
func (m *memory) free(t *testing.T) {
	if m == nil {
		return
	}
	for _, a := range m.ranks {
		for _, b := range a.blocks {
			if err := b.Free(); err != nil {
				t.Error(err)
			}
		}
	}
}

// put returns x as a buffer where the ranks of the row have theirs, with the values
// that x has now.
func put[T goccl.Number](s *suite, g *processgroup.Group, x []T) device.Buffer {
	return s.memory.place(g.Rank(), device.SliceOf(x), 0)
}

// place returns the mirror of a host buffer.
func (m *memory) place(rank int, b device.Buffer, skew int) device.Buffer {
	if m == nil {
		return b
	}
	a := m.ranks[rank]
	if b.Count == 0 {
		return device.FromPointer(0, 0, b.DType, a.dev.ID(), nil)
	}
	at := a.put(device.HostBytes(b), skew)
	return device.FromPointer(at.dev, b.Count, b.DType, a.dev.ID(), b.Owner)
}

// got returns x with the values that its buffers on this rank have now.
func got[T goccl.Number](s *suite, g *processgroup.Group, x []T) []T {
	if s.memory != nil && len(x) > 0 {
		s.memory.ranks[g.Rank()].get(device.HostBytes(device.SliceOf(x)))
	}
	return x
}

// allReduce is processgroup.AllReduce on the memory of the row.
func allReduce[T goccl.Number](ctx context.Context, s *suite, g *processgroup.Group, x []T, op goccl.ReduceOp) error {
	if s.memory == nil {
		return processgroup.AllReduce(ctx, g, x, op)
	}
	err := g.AllReduce(put(s, g, x), op).Wait(ctx)
	got(s, g, x)
	return err
}

// bcast is processgroup.Broadcast on the memory of the row.
func bcast[T goccl.Number](ctx context.Context, s *suite, g *processgroup.Group, x []T, root int) error {
	if s.memory == nil {
		return processgroup.Broadcast(ctx, g, x, root)
	}
	err := g.Broadcast(put(s, g, x), root).Wait(ctx)
	got(s, g, x)
	return err
}
