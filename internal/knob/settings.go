package knob

import (
	"log/slog"
	"time"

	"github.com/goccl/goccl"
)

// Settings is what the knobs say. Make it with Parse, Load or Default: the zero
// value differs from the defaults in ListenFD and Debug.
type Settings struct {
	Algorithm     goccl.Algorithm
	Protocol      goccl.Protocol
	Timeout       time.Duration // 0: the library's own default
	Debug         slog.Level    // least level that is logged
	SocketIfname  Interfaces
	Backend       string // empty: the library's own
	NCCLLib       string // path of libnccl.so.2; empty: where the linker finds it
	HostID        string // empty: found from the machine
	JobID         string // empty: none
	DumpDir       string // empty: dumps go to the working folder
	PortRange     PortRange
	MaxChannels   int // 0: no limit
	ChunkBytes    int // 0: chosen by size
	ListenFD      int // an open listening socket that this process inherited; -1: none
	ShmDisable    bool
	ShareGPU      bool
	Deterministic bool

	// Given lists the knobs that were set, in the order of All.
	Given []Given
}

// Given is one knob that was set, and where.
type Given struct {
	Name    string // GOCCL_...
	Value   string // as written
	Source  string // "GOCCL_ALGO", "NCCL_ALGO", or one of them and " (FILE:LINE)"
	Uniform bool   // ranks must agree on it
}

// Levels of GOCCL_DEBUG. Trace lies below slog's Debug: a line per step.
const (
	LevelTrace = slog.LevelDebug - 4
	levelOff   = slog.LevelError + 4
)

// Default returns the settings of an empty environment.
func Default() Settings { return Settings{Debug: slog.LevelWarn, ListenFD: -1} }

// PortRange bounds the ports on which this process listens. The zero value lets
// the system choose.
type PortRange struct{ First, Last uint16 }

// Any reports whether the system may choose.
func (r PortRange) Any() bool { return r == PortRange{} }

// Uniform returns the knobs that were set and on which ranks must agree, for a
// comparison that can name knob, values and ranks.
func (s Settings) Uniform() []Given {
	var u []Given
	for _, g := range s.Given {
		if g.Uniform {
			u = append(u, g)
		}
	}
	return u
}
