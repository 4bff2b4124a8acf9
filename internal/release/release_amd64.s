//go:build !race

#include "textflag.h"

// func Store(w *atomic.Uint64, v uint64)
// Stores are seen in order on this architecture.
TEXT ·Store(SB), NOSPLIT, $0-16
	MOVQ w+0(FP), AX
	MOVQ v+8(FP), BX
	MOVQ BX, (AX)
	RET
