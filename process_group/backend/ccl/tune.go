package ccl

import (
	"maps"

	"github.com/goccl/goccl/autotune"
	"github.com/goccl/goccl/comm"
	"github.com/goccl/goccl/device"
)

// tuned returns cfg with the library's own tuner where none was given. Ranks must
// have equal tuning profiles, so the profile's hash is one of their settings.
func (cfg Config) tuned() (Config, error) {
	if cfg.Tuner == nil {
		t, err := autotune.Default()
		if err != nil {
			return cfg, err
		}
		cfg.Tuner = t
	}
	t, ok := cfg.Tuner.(*autotune.Tuner)
	if !ok {
		return cfg, nil
	}
	settings := maps.Clone(cfg.Settings)
	if settings == nil {
		settings = map[string]string{}
	}
	settings["the tuning profile"] = t.Hash()
	cfg.Settings = settings
	if cfg.Rank == 0 {
		cfg.Tuner = autotune.Explained(t, cfg.Logger)
	}
	return cfg, nil
}

// byMemory is the tuner of a backend: one for host memory, and the communicator's
// own for memory of devices, of which the profile knows nothing.
type byMemory struct{ host comm.Tuner }

// Choose implements comm.Tuner.
func (m byMemory) Choose(r comm.Request) (comm.Decision, error) {
	if r.Device != device.Host || m.host == nil {
		return comm.DefaultTuner().Choose(r)
	}
	return m.host.Choose(r)
}
