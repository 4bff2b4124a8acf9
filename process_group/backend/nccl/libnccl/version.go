package libnccl

import (
	"fmt"

	"github.com/goccl/goccl"
)

// Version is NCCL's own code for a version: 22809 is 2.28.9.
type Version int

// The versions between which the tables of this package were read. A later 2.x is
// taken too: NCCL only appends to its structures.
const (
	Oldest Version = 22000
	Newest Version = 23203
)

// Parts returns major, minor and patch. Before 2.9 the code had fewer digits.
func (v Version) Parts() (major, minor, patch int) {
	n := int(v)
	if n < 10000 {
		return n / 1000, n / 100 % 10, n % 100
	}
	return n / 10000, n / 100 % 100, n % 100
}

// String returns, for example, "2.28.9".
func (v Version) String() string {
	major, minor, patch := v.Parts()
	return fmt.Sprintf("%d.%d.%d", major, minor, patch)
}

// check refuses a library that this package does not know how to call.
func (v Version) check() error {
	switch major, _, _ := v.Parts(); {
	case v <= 0:
		return fmt.Errorf("%w: NCCL says its version is %d", goccl.ErrUnsupported, int(v))
	case major > 2:
		return fmt.Errorf("%w: NCCL %v has another interface than 2.x, which is known here; load a libnccl.so.2", goccl.ErrUnsupported, v)
	case v < Oldest:
		return fmt.Errorf("%w: NCCL %v is older than %v; %s", goccl.ErrUnsupported, v, Oldest, HowToGet)
	}
	return nil
}
