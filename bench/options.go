package main

import (
	"flag"
	"fmt"
	"os"
	"strconv"
	"strings"

	"github.com/goccl/goccl"
	"github.com/goccl/goccl/dist"
)

// options is what the command line asks for.
type options struct {
	coll       goccl.Collective
	min, max   int64 // bytes
	factor     int64
	step       int64 // added instead, when not 0
	ranks      int
	threads    int
	dtype      goccl.DType
	op         goccl.ReduceOp
	root       int
	check      bool
	warm       int
	iters      int // 0: as many as fill a batch
	batches    int
	cold       bool
	json, dump string
	gpuOptions
}

// gpuOptions are those of measurements on GPUs.
type gpuOptions struct {
	backend string // "ccl", "nccl"
	vs      string // "nccl" or nothing
	ctas    []int  // of the tuned sides of vs
	graph   bool
	events  bool
	gpu     bool
	library string // of NCCL; "": where the dynamic linker finds it
}

// onGPU reports whether buffers lie on GPUs.
func (o *gpuOptions) onGPU() bool { return o.gpu || o.backend == "nccl" || o.vs == "nccl" }

const usage = `Usage: bench COLLECTIVE [flags]

COLLECTIVE is one of allreduce broadcast reduce allgather reducescatter alltoall
gather scatter sendrecv (every rank sends to the next one).

  go run ./bench allreduce -b 8 -e 64M -f 2 -n 4
  go run ./bench allgather -n 2 -cold -json rows.json
  go run ./bench allreduce -n 2 -backend nccl -b 8 -e 1G
  go run ./bench allreduce -n 2 -backend nccl -vs nccl

Flags:
`

func parse(args []string) (*options, error) {
	o := &options{}
	fs := flag.NewFlagSet("bench", flag.ContinueOnError)
	fs.Usage = func() { fmt.Fprint(os.Stderr, usage); fs.PrintDefaults() }
	var least, most, step, dtype, op, ctas string
	fs.StringVar(&least, "b", "8", "smallest size in bytes, with K, M or G")
	fs.StringVar(&most, "e", "64M", "largest size")
	fs.Int64Var(&o.factor, "f", 2, "factor between sizes")
	fs.StringVar(&step, "i", "0", "step between sizes instead of a factor")
	fs.IntVar(&o.ranks, "n", 2, "ranks, as processes of this machine")
	fs.IntVar(&o.threads, "threads", 0, "ranks as goroutines of one process instead")
	fs.StringVar(&dtype, "d", "f32", "element type: f32 f64 f16 bf16 i8 u8 i32 u32 i64 u64")
	fs.StringVar(&op, "o", "sum", "reduction: sum prod min max avg")
	fs.IntVar(&o.root, "root", 0, "root of broadcast, reduce, gather and scatter")
	fs.BoolVar(&o.check, "c", true, "check the results of every size")
	fs.IntVar(&o.warm, "w", 5, "operations before the timing")
	fs.IntVar(&o.iters, "iters", 0, "operations of a batch; 0: as many as take a few milliseconds")
	fs.IntVar(&o.batches, "batches", 9, "batches; the time is the median over them")
	fs.BoolVar(&o.cold, "cold", false, "rewrite the input before every timed operation, as a training step does")
	fs.StringVar(&o.json, "json", "", "append one JSON object a row to this file")
	fs.StringVar(&o.backend, "backend", "ccl", "what moves the data: ccl, the library's own, or nccl, on GPUs")
	fs.BoolVar(&o.gpu, "gpu", false, "buffers on GPUs, one for each rank, which nccl always has")
	fs.StringVar(&o.vs, "vs", "", "nccl: time NCCL beside the backend, called directly as nccl-tests does, as it is and tuned, in turns")
	fs.StringVar(&ctas, "ctas", "32,64", "what the tuned sides of -vs set NCCL's minCTAs and maxCTAs to")
	fs.BoolVar(&o.graph, "graph", false, "on GPUs: capture a batch as a CUDA graph and time its replay")
	fs.BoolVar(&o.events, "events", false, "on GPUs: take a batch's time from events on the stream, not from the host's clock")
	fs.StringVar(&o.dump, "dump", "", "write rank 0's input and output of the last row to this file")
	if len(args) == 0 || strings.HasPrefix(args[0], "-") {
		if err := fs.Parse(args); err != nil {
			return nil, err
		}
		fs.Usage()
		return nil, fmt.Errorf("which collective?")
	}
	if err := fs.Parse(args[1:]); err != nil {
		return nil, err
	}
	if fs.NArg() > 0 {
		return nil, fmt.Errorf("%q is not a flag", fs.Arg(0))
	}
	if err := o.fillGPU(ctas, o.dump); err != nil {
		return nil, err
	}
	return o, o.fill(args[0], least, most, step, dtype, op)
}

func (o *gpuOptions) fillGPU(ctas, dump string) error {
	if o.backend != "ccl" && o.backend != "nccl" {
		return fmt.Errorf("no backend is called %q; there are ccl and nccl", o.backend)
	}
	if o.vs != "" && o.vs != "nccl" {
		return fmt.Errorf("nothing to compare with is called %q; there is nccl", o.vs)
	}
	for _, text := range strings.Split(ctas, ",") {
		n, err := strconv.Atoi(text)
		if err != nil || n < 1 || n > 64 {
			return fmt.Errorf("-ctas %q; want numbers from 1 to 64, as 32,64", ctas)
		}
		o.ctas = append(o.ctas, n)
	}
	for name, asked := range map[string]bool{"graph": o.graph, "events": o.events} {
		if asked && !o.onGPU() {
			return fmt.Errorf("-%s needs a backend on GPUs", name)
		}
	}
	if dump != "" && o.onGPU() {
		return fmt.Errorf("-dump writes host memory; the buffers of this run lie on GPUs")
	}
	o.library = dist.FromEnv().Options["nccl.library"]
	return nil
}

func (o *options) fill(coll, least, most, step, dtype, op string) (err error) {
	if o.coll, err = goccl.ParseCollective(coll); err != nil {
		return err
	}
	if o.coll == goccl.Barrier {
		return fmt.Errorf("a barrier has no size; time allreduce of 8 bytes")
	}
	if o.dtype, err = goccl.ParseDType(dtype); err != nil {
		return err
	}
	if o.op, err = goccl.ParseReduceOp(op); err != nil {
		return err
	}
	if o.coll.Reduces() && !o.dtype.Reducible() {
		return fmt.Errorf("%v of %v is not defined", o.coll, o.dtype)
	}
	for _, s := range []struct {
		text string
		to   *int64
	}{{least, &o.min}, {most, &o.max}, {step, &o.step}} {
		if *s.to, err = parseSize(s.text); err != nil {
			return err
		}
	}
	switch {
	case o.min < 0 || o.max < o.min:
		return fmt.Errorf("sizes from %d to %d", o.min, o.max)
	case o.step == 0 && o.factor < 2:
		return fmt.Errorf("factor %d; want 2 or more, or a step (-i)", o.factor)
	case o.ranks < 1 || o.threads < 0 || o.batches < 1 || o.warm < 0 || o.iters < 0:
		return fmt.Errorf("ranks, threads, batches, warm-up and iterations cannot be negative, nor ranks and batches zero")
	}
	return nil
}

// parseSize reads a number of bytes with an optional K, M or G (powers of 1024).
func parseSize(s string) (int64, error) {
	text, unit := strings.TrimSuffix(strings.ToUpper(s), "B"), int64(1)
	for i, u := range "KMG" {
		if strings.HasSuffix(text, string(u)) {
			text, unit = text[:len(text)-1], 1<<(10*(i+1))
		}
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || n < 0 || n > (1<<62)/unit {
		return 0, fmt.Errorf("%q is not a size; write for example 8, 64K or 1G", s)
	}
	return n * unit, nil
}

// last is the largest of sizes.
func (o *options) last() int64 { s := o.sizes(); return s[len(s)-1] }

// sizes lists the sizes in bytes.
func (o *options) sizes() []int64 {
	var out []int64
	for n := o.min; n <= o.max; {
		out = append(out, n)
		switch {
		case o.step > 0:
			n += o.step
		case n == 0:
			n = 1
		default:
			n *= o.factor
		}
	}
	return out
}
