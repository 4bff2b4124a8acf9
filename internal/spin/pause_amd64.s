#include "textflag.h"

// func pause(n uint32)
TEXT ·pause(SB), NOSPLIT, $0-4
	MOVL n+0(FP), CX
again:
	PAUSE
	DECL CX
	JNZ  again
	RET
