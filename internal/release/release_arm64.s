//go:build !race

#include "textflag.h"

// func Store(w *atomic.Uint64, v uint64)
TEXT ·Store(SB), NOSPLIT, $0-16
	MOVD w+0(FP), R0
	MOVD v+8(FP), R1
	STLR R1, (R0)
	RET
