package nccl

import (
	"os"
	"testing"

	"github.com/goccl/goccl/internal/leak"
)

func TestMain(m *testing.M) {
	// No multicast objects on machines that tests run on.
	for k, v := range map[string]string{"NCCL_NVLS_ENABLE": "0"} {
		if err := os.Setenv(k, v); err != nil {
			panic(err)
		}
	}
	os.Exit(leak.Check(m))
}
