//go:build !linux

package spin

import "math"

func quota() int { return math.MaxInt }
