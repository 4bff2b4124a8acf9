package gpu

import "github.com/goccl/goccl/comm/plan"

// FlagMask is that of Encode.
const FlagMask = flagMask

// BindMask is Bind with another repetition of the flags of LL. It takes a fused kernel
// where there is one only if fused says so.
func (r *Rank) BindMask(p *plan.Program, mask uint32, fused bool) (*Bound, error) {
	m, err := encode(p, r.cfg.Layout, r.bases, mask)
	if err != nil {
		return nil, err
	}
	if fused {
		fuse(p, r.cfg.Layout, r.bases, mask, m)
	}
	return r.upload(p, m)
}

// Fused reports whether a fused kernel runs b.
func (b *Bound) Fused() bool { return b.fused != nil }

// State returns where what the rank counts is.
func (r *Rank) State() (addr uintptr, bytes int) { return r.state.Addr(), r.state.Bytes() }

// Fault is the reason for which a kernel gave up.
func (r *Rank) Fault() uint32 { return r.ends.why() }

// FillImages leaves no room for images.
func (r *Rank) FillImages() { r.used = r.images.Bytes() }
