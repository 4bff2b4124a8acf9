package table

// mlp are the kernels of a multilayer perceptron. All matrices are row-major and
// dense.
func mlp() Group {
	return Group{
		Name: "mlp",
		Doc:  "kernels of a multilayer perceptron. Matrices are row-major and dense.",
		Consts: []Const{
			{Name: "MatmulTile", Type: U32, Value: 64, Doc: "rows and columns of C that one block computes"},
			{Name: "MatmulTransposeA", Type: U32, Value: 1, Doc: "flag: a is stored k x m"},
			{Name: "MatmulTransposeB", Type: U32, Value: 2, Doc: "flag: b is stored n x k"},
			{Name: "XentWarps", Type: U32, Value: 8, Doc: "rows that one block of softmax_xent_f32 takes"},
		},
		Structs: []Struct{
			{Name: "MatmulArgs", Doc: "are the arguments of matmul_f32: C = alpha * op(A) * op(B), op(A) m x k, op(B) k x n. Each sum runs over k in order, fused, so it does not depend on the launch.", Fields: []Field{
				{Name: "a", Type: Ptr("const float"), Doc: "m x k, or k x m with MatmulTransposeA"},
				{Name: "b", Type: Ptr("const float"), Doc: "k x n, or n x k with MatmulTransposeB"},
				{Name: "c", Type: Ptr("float"), Doc: "m x n, written; overlaps neither a nor b"},
				{Name: "m", Type: U32},
				{Name: "n", Type: U32},
				{Name: "k", Type: U32},
				{Name: "flags", Type: U32},
				{Name: "alpha", Type: F32},
			}},
			{Name: "BiasArgs", Doc: "are the arguments of bias_f32: x[r][c] += bias[c], then, with knee > 0, ReLU with a kink rounded off over [0, knee].", Fields: []Field{
				{Name: "x", Type: Ptr("float"), Doc: "rows x cols, in place"},
				{Name: "bias", Type: Ptr("const float"), Doc: "cols"},
				{Name: "rows", Type: U32},
				{Name: "cols", Type: U32},
				{Name: "knee", Type: F32, Doc: "0: no activation"},
			}},
			{Name: "ReluGradArgs", Doc: "are the arguments of smooth_relu_grad_f32: the gradient of the activation's outputs becomes that of its inputs.", Fields: []Field{
				{Name: "grad", Type: Ptr("float"), Doc: "n elements, in place"},
				{Name: "out", Type: Ptr("const float"), Doc: "n outputs of the activation"},
				{Name: "n", Type: U64},
				{Name: "knee", Type: F32, Doc: "above 0"},
			}},
			{Name: "SumRowsArgs", Doc: "are the arguments of sum_rows_f32: sum[c] is the sum of x[r][c] over rows r in order.", Fields: []Field{
				{Name: "x", Type: Ptr("const float"), Doc: "rows x cols"},
				{Name: "sum", Type: Ptr("float"), Doc: "cols, written"},
				{Name: "rows", Type: U32},
				{Name: "cols", Type: U32},
			}},
			{Name: "XentRow", Doc: "is the loss of one sample.", Fields: []Field{
				{Name: "loss", Type: F64, Doc: "-log softmax(logits)[label]"},
				{Name: "best", Type: U32, Doc: "the class with the highest logit, the first of equals"},
				{Name: "correct", Type: U32, Doc: "1 when best is the label, else 0; a label that is no class is never correct and its loss and gradient are NaN"},
			}},
			{Name: "XentArgs", Doc: "are the arguments of softmax_xent_f32: for each row its loss and the gradient of the mean loss.", Fields: []Field{
				{Name: "logits", Type: Ptr("const float"), Doc: "rows x classes"},
				{Name: "grad", Type: Ptr("float"), Doc: "rows x classes, written: (softmax - one at label) / batch; may be logits"},
				{Name: "labels", Type: Ptr("const u8"), Doc: "rows"},
				{Name: "row", Type: Ptr("XentRow"), Doc: "rows, written"},
				{Name: "rows", Type: U32},
				{Name: "classes", Type: U32, Doc: "at least 1"},
				{Name: "batch", Type: U32, Doc: "divisor of the gradient, rows for the mean over this rank's samples"},
			}},
			{Name: "XentSum", Doc: "is the sum of XentRows.", Fields: []Field{
				{Name: "loss", Type: F64},
				{Name: "correct", Type: U64},
			}},
			{Name: "XentSumArgs", Doc: "are the arguments of xent_sum: the sum over rows in an order that depends on their number alone.", Fields: []Field{
				{Name: "row", Type: Ptr("const XentRow"), Doc: "rows"},
				{Name: "sum", Type: Ptr("XentSum"), Doc: "one, written"},
				{Name: "rows", Type: U32},
			}},
		},
	}
}
