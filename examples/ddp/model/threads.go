package model

import (
	"sync"
	"sync/atomic"

	"gonum.org/v1/gonum/blas"
	"gorgonia.org/tensor"
)

// Threads makes each matrix product of this process use n goroutines, until the
// function it returns is called. A rank has its share of the cores for computing and
// needs what is left of its threads for communication: gonum by itself takes all of
// them, and a message would wait until the scheduler takes one away. It is for the
// whole process, as the choice of BLAS in gorgonia is; products that run meanwhile are
// not affected.
func Threads(n int) (restore func()) {
	before := tensor.WhichBLAS()
	tensor.Use(pieces{before, max(1, n)})
	return func() { tensor.Use(before) }
}

// pieces multiplies in pieces so small that gonum starts no goroutines for them. No
// element's sum is divided, so the result depends neither on the pieces nor on threads.
type pieces struct {
	tensor.BLAS
	threads int
}

// gonum works in blocks of 64 × 64, and in parallel from four of them on.
const (
	pieceRows = 64
	pieceCols = 3 * 64
)

// Sgemm implements blas.Float32Level3.
func (p pieces) Sgemm(tA, tB blas.Transpose, m, n, k int, alpha float32, a []float32, lda int, b []float32, ldb int, beta float32, c []float32, ldc int) {
	row, col := lda, 1 // from one row of the product to the next in a, one column in b
	if tA != blas.NoTrans {
		row = 1
	}
	if tB != blas.NoTrans {
		col = ldb
	}
	rows := func(i int) {
		for j := 0; j < n; j += pieceCols {
			p.BLAS.Sgemm(tA, tB, min(pieceRows, m-i), min(pieceCols, n-j), k, alpha, a[i*row:], lda, b[j*col:], ldb, beta, c[i*ldc+j:], ldc)
		}
	}
	if p.threads == 1 {
		for i := 0; i < m; i += pieceRows {
			rows(i)
		}
		return
	}
	var next atomic.Int64
	var done sync.WaitGroup
	for range p.threads {
		done.Go(func() {
			for i := int(next.Add(1)-1) * pieceRows; i < m; i = int(next.Add(1)-1) * pieceRows {
				rows(i)
			}
		})
	}
	done.Wait()
}
