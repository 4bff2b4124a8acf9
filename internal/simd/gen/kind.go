package main

import "strings"

// kind is one element type and the file of kernels for it. The integers of one
// size share a file, because both signs share Sum and Prod.
type kind struct {
	name   string
	dtypes []dtype
}

// dtype is a row of the dispatch table.
type dtype struct {
	name  string // as in package goccl
	float bool
	wide  bool // arithmetic in 64-bit floats
	begin func(a *asm, operation string) element
}

// function returns the stem of a kernel's name. An unsigned integer uses the
// signed one's Sum and Prod.
func (d dtype) function(operation string) string {
	stem := strings.ToLower(d.name)
	if stem[0] == 'u' && (operation == sum || operation == prod) {
		stem = "i" + stem[1:]
	}
	return stem + operation
}

func kinds() []kind {
	float := func(name string, wide bool, begin func(*asm, string) element) kind {
		return kind{name: strings.ToLower(name), dtypes: []dtype{{name, true, wide, begin}}}
	}
	integer := func(name, signed, unsigned string, bits int) kind {
		row := func(n string, s bool) dtype {
			return dtype{name: n, begin: func(a *asm, o string) element { return newInteger(a, o, bits, s) }}
		}
		return kind{name: name, dtypes: []dtype{row(signed, true), row(unsigned, false)}}
	}
	plain := func(wide bool) func(*asm, string) element {
		return func(a *asm, o string) element { return newFloat(a, o, wide) }
	}
	return []kind{
		float("F32", false, plain(false)),
		float("F64", true, plain(true)),
		float("F16", false, newF16),
		float("BF16", false, newBF16),
		integer("int8", "I8", "U8", 8),
		integer("int32", "I32", "U32", 32),
		integer("int64", "I64", "U64", 64),
	}
}

// emit assembles all kernels of k.
func (k kind) emit(a *asm) {
	done := map[string]bool{}
	for _, d := range k.dtypes {
		for _, o := range []string{sum, prod, minimum, maximum} {
			stem := d.function(o)
			if done[stem] {
				continue
			}
			done[stem] = true
			begin := func() element { return d.begin(a, o) }
			a.pair(stem+"Pair"+a.suffix, begin)
			a.rows(stem+"Rows"+a.suffix, begin)
		}
		if d.float {
			for _, o := range []string{mul, div} {
				a.scale(d.function(o)+a.suffix, d.wide, func() element { return d.begin(a, o) })
			}
		}
	}
}
