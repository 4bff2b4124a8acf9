package cuda

import "github.com/goccl/goccl/internal/testproc"

func shareRank(c *testproc.Child) error { return nil }
