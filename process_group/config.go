package processgroup

import (
	"fmt"
	"log/slog"
	"os"
	"slices"
	"time"

	"github.com/goccl/goccl"
)

// DefaultTimeout is how long an operation may be blocked before the group aborts.
const DefaultTimeout = 10 * time.Minute

// Config is what New needs. Name, Size and Backend must be given.
type Config struct {
	Job         string // name of the job, for file names; may be empty
	Name        string // of the group: "world", "tp0", ...
	Rank, Size  int
	GlobalRanks []int // rank in the job, by rank in the group; nil: the same
	Backend     Backend
	Control     Control       // nil: the ranks cannot tell each other of failures
	Timeout     time.Duration // how long an operation may be blocked; 0: DefaultTimeout
	Logger      *slog.Logger  // nil: silent
	DumpDir     string        // where the flight recorder is dumped on failure; "": nowhere
	Host        string        // name of this machine in messages; "": the system's
}

// fill checks the configuration and puts defaults in.
func (c *Config) fill() error {
	switch {
	case c.Name == "":
		return fmt.Errorf("%w: a group needs a name", goccl.ErrInvalid)
	case c.Size < 1 || c.Rank < 0 || c.Rank >= c.Size:
		return fmt.Errorf("%w: rank %d in group %q of %d", goccl.ErrInvalid, c.Rank, c.Name, c.Size)
	case c.Backend == nil:
		return fmt.Errorf("%w: group %q has no backend", goccl.ErrInvalid, c.Name)
	case c.GlobalRanks != nil && len(c.GlobalRanks) != c.Size:
		return fmt.Errorf("%w: group %q of %d has %d global ranks", goccl.ErrInvalid, c.Name, c.Size, len(c.GlobalRanks))
	case c.Timeout < 0:
		return fmt.Errorf("%w: group %q has a timeout of %v", goccl.ErrInvalid, c.Name, c.Timeout)
	}
	if c.GlobalRanks == nil {
		c.GlobalRanks = make([]int, c.Size)
		for i := range c.GlobalRanks {
			c.GlobalRanks[i] = i
		}
	} else {
		c.GlobalRanks = slices.Clone(c.GlobalRanks)
	}
	if c.Timeout == 0 {
		c.Timeout = DefaultTimeout
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	if c.Host == "" {
		c.Host, _ = os.Hostname() // an unknown host name leaves the pid to tell
	}
	return nil
}
