package ccl

import (
	"maps"

	"github.com/goccl/goccl/autotune"
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
