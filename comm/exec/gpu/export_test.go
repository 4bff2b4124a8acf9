package gpu

import "github.com/goccl/goccl/comm/plan"

// FlagMask is that of Encode.
const FlagMask = flagMask

// BindMask is Bind with another repetition of the flags of LL.
func (r *Rank) BindMask(p *plan.Program, mask uint32) (*Bound, error) {
	m, err := encode(p, r.cfg.Layout, r.bases, mask)
	if err != nil {
		return nil, err
	}
	return r.upload(p, m)
}

// State returns where what the rank counts is.
func (r *Rank) State() (addr uintptr, bytes int) { return r.state.Addr(), r.state.Bytes() }

// Fault is the reason for which a kernel gave up.
func (r *Rank) Fault() uint32 { return r.ends.why() }

// FillImages leaves no room for images.
func (r *Rank) FillImages() { r.used = r.images.Bytes() }
