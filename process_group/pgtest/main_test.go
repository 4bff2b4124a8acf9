package pgtest_test

import (
	"os"
	"testing"

	"github.com/goccl/goccl/internal/leak"
)

func TestMain(m *testing.M) { os.Exit(leak.Check(m)) }
