package nccl

import (
	"os"
	"testing"

	"github.com/goccl/goccl/internal/leak"
)

func TestMain(m *testing.M) {
	// No multicast objects on machines that tests run on.
	if err := os.Setenv("NCCL_NVLS_ENABLE", "0"); err != nil {
		panic(err)
	}
	if _, err := os.Stat("/dev/nvidiactl"); err == nil || os.Getenv("GOCCL_TEST_MODELS") != "" {
		os.Exit(m.Run()) // driver and NCCL keep threads and files to the end of the process
	}
	os.Exit(leak.Check(m))
}
