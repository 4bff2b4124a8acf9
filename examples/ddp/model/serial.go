package model

import (
	"gonum.org/v1/gonum/blas"
	"gorgonia.org/tensor"
)

// Serial makes the matrix products of this process use one goroutine each, until
// the function it returns is called. A rank has its share of the cores for
// computing and needs what is left of its threads for communication: goroutines of
// one product would take all of them, and a message would wait until the scheduler
// takes one away. It is for the whole process, as the choice of BLAS in gorgonia
// is; products that run meanwhile are not affected.
func Serial() (parallel func()) {
	before := tensor.WhichBLAS()
	tensor.Use(serial{before})
	return func() { tensor.Use(before) }
}

// serial multiplies in pieces so small that gonum starts no goroutines for them. No
// element's sum is divided, so the result does not depend on the pieces.
type serial struct{ tensor.BLAS }

// gonum works in blocks of 64 × 64, and in parallel from four of them on.
const (
	pieceRows = 64
	pieceCols = 3 * 64
)

// Sgemm implements blas.Float32Level3.
func (s serial) Sgemm(tA, tB blas.Transpose, m, n, k int, alpha float32, a []float32, lda int, b []float32, ldb int, beta float32, c []float32, ldc int) {
	row, col := lda, 1 // from one row of the product to the next in a, one column in b
	if tA != blas.NoTrans {
		row = 1
	}
	if tB != blas.NoTrans {
		col = ldb
	}
	for i := 0; i < m; i += pieceRows {
		for j := 0; j < n; j += pieceCols {
			s.BLAS.Sgemm(tA, tB, min(pieceRows, m-i), min(pieceCols, n-j), k, alpha, a[i*row:], lda, b[j*col:], ldb, beta, c[i*ldc+j:], ldc)
		}
	}
}
