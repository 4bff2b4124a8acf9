//go:build racecanary

package policy_test

import (
	"os"
	"os/exec"
	"testing"

	"github.com/stretchr/testify/require"
)

// inside marks the process in which the race is to happen.
const inside = "GOCCL_TEST_RACE_CANARY"

// TestDeliberateRace writes one variable from two goroutines without order, in
// the process that TestRaceCanary starts.
func TestDeliberateRace(t *testing.T) {
	if _, ok := os.LookupEnv(inside); !ok {
		t.Skip("runs inside TestRaceCanary")
	}
	n := 0
	done := make(chan struct{})
	go func() {
		n++
		close(done)
	}()
	n++
	<-done
	require.Positive(t, n)
}

// TestRaceCanary is built with the tag racecanary, which `make race` sets. It runs this binary again with the race in it, which must fail. It
// passes in race builds only, so a run of the suite in which the race detector is
// off by mistake fails here.
func TestRaceCanary(t *testing.T) {
	cmd := exec.Command(os.Args[0], "-test.run=^TestDeliberateRace$")
	cmd.Env = append(os.Environ(), inside+"=1")
	out, err := cmd.CombinedOutput()
	require.Error(t, err, "a data race went unnoticed: the race detector is off\n%s", out)
	require.Contains(t, string(out), "WARNING: DATA RACE")
}
