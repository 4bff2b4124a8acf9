package table

// elementwise are the kernels that treat each element by itself.
func elementwise() Group {
	return Group{
		Name: "elementwise",
		Doc:  "kernels that treat each element by itself.",
		Consts: []Const{
			{Name: "PatternRange", Type: U32, Value: 1024, Doc: "values of the pattern are whole numbers below it"},
			{Name: "PatternRankStep", Type: U32, Value: 421, Doc: "odd, so PatternRange ranks in a row differ in every element"},
			{Name: "PatternMaxRanks", Type: U32, Value: 16384, Doc: "sums over so many ranks are exact in float32"},
		},
		Structs: []Struct{
			{Name: "FillArgs", Doc: "are the arguments of fill_pattern_f32: x[i] = P(rank, first + i).", Fields: []Field{
				{Name: "x", Type: Ptr("float"), Doc: "n elements, written"},
				{Name: "n", Type: U64},
				{Name: "first", Type: U64, Doc: "element number of x[0]"},
				{Name: "rank", Type: U32},
			}},
			{Name: "Mismatches", Doc: "counts elements that are not as expected. Set it to {0, ^0} before the first kernel that adds to it.", Fields: []Field{
				{Name: "count", Type: U64},
				{Name: "first", Type: U64, Doc: "smallest index among them; all ones when there is none"},
			}},
			{Name: "CheckArgs", Doc: "are the arguments of check_pattern_f32: x[i] is expected to be the sum of P(r, first + i) over ranks r in [rank, rank + ranks).", Fields: []Field{
				{Name: "x", Type: Ptr("const float"), Doc: "n elements"},
				{Name: "result", Type: Ptr("Mismatches"), Doc: "added to"},
				{Name: "n", Type: U64},
				{Name: "first", Type: U64, Doc: "element number of x[0]"},
				{Name: "rank", Type: U32},
				{Name: "ranks", Type: U32, Doc: "at least 1, at most PatternMaxRanks"},
			}},
			{Name: "CompareArgs", Doc: "are the arguments of compare_f32: x[i] is expected to have the bits of y[i], or to differ from it by at most absolute + relative*|y[i]|.", Fields: []Field{
				{Name: "x", Type: Ptr("const float"), Doc: "n elements"},
				{Name: "y", Type: Ptr("const float"), Doc: "n elements"},
				{Name: "result", Type: Ptr("Mismatches"), Doc: "added to"},
				{Name: "n", Type: U64},
				{Name: "absolute", Type: F32},
				{Name: "relative", Type: F32},
			}},
			{Name: "ScaleArgs", Doc: "are the arguments of scale_f32: x[i] *= factor.", Fields: []Field{
				{Name: "x", Type: Ptr("float"), Doc: "n elements, in place"},
				{Name: "n", Type: U64},
				{Name: "factor", Type: F32},
			}},
			{Name: "AxpyArgs", Doc: "are the arguments of axpy_f32: y[i] += a*x[i], both operations rounded.", Fields: []Field{
				{Name: "x", Type: Ptr("const float"), Doc: "n elements"},
				{Name: "y", Type: Ptr("float"), Doc: "n elements, in place; x and y may be the same"},
				{Name: "n", Type: U64},
				{Name: "a", Type: F32},
			}},
			{Name: "SgdArgs", Doc: "are the arguments of sgd_f32: velocity = momentum*velocity + grad, then value -= rate*velocity.", Fields: []Field{
				{Name: "value", Type: Ptr("float"), Doc: "n elements, in place"},
				{Name: "velocity", Type: Ptr("float"), Doc: "n elements, in place"},
				{Name: "grad", Type: Ptr("const float"), Doc: "n elements"},
				{Name: "n", Type: U64},
				{Name: "rate", Type: F32},
				{Name: "momentum", Type: F32},
			}},
		},
	}
}
