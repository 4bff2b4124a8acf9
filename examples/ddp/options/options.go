// Package options is the command line of the example: the flags, their defaults
// and what makes sense together.
package options

import (
	"cmp"
	"errors"
	"flag"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"

	"github.com/goccl/goccl/examples/ddp/mnist"
)

// Options is what a run of the example is asked to do.
type Options struct {
	Ranks          int     // rank processes on this machine; 0 with CUDA: one for each GPU
	Device         string  // where ranks compute: Host or CUDA
	Backend        string  // what averages gradients on a GPU: "ccl", "nccl"; empty on the host
	Epochs         int     // passes over the training images
	Batch          int     // samples in a step, over all ranks together
	Images         int     // train on the first so many images, and test on at most as many
	BucketMiB      float64 // size from which a gradient bucket is full, in MiB
	FirstBucketMiB float64 // the same for the bucket that fires first, in MiB
	NoOverlap      bool    // communicate only after the backward pass
	LR             float64 // peak learning rate
	Seed           uint64  // everything random comes from it
	Link           Link    // shaped link between ranks; zero: as fast as the machine
	Dump           string  // file for the final parameters; empty: none
	JSON           string  // file for the result; empty: none
}

// Where ranks compute.
const (
	Host = "host"
	CUDA = "cuda"
)

// backends are what may average gradients on a GPU; the first one does by default.
var backends = []string{"ccl", "nccl"}

// Default is a run without flags.
func Default() Options {
	return Options{
		Ranks:          4,
		Device:         Host,
		Epochs:         2,
		Batch:          320,
		Images:         mnist.Train,
		BucketMiB:      0.4,
		FirstBucketMiB: 0.25,
		LR:             0.15,
	}
}

// MaxRanks bounds the rank processes that one machine is asked to run.
const MaxRanks = 64

// Parse reads the arguments after the program name. What the user should see (the
// flags after -h or a mistake) goes to out. After -h the error is flag.ErrHelp.
func Parse(args []string, out io.Writer) (Options, error) {
	o := Default()
	fs := flag.NewFlagSet("ddp", flag.ContinueOnError)
	fs.SetOutput(out)
	fs.Usage = func() { usage(fs) }
	fs.IntVar(&o.Ranks, "ranks", o.Ranks, "`number` of rank processes on this machine; with -device cuda one for each GPU")
	fs.StringVar(&o.Device, "device", o.Device, "`where` ranks compute: host, or cuda, each on a GPU of its own")
	fs.StringVar(&o.Backend, "backend", o.Backend, "what averages gradients with -device cuda: `ccl`, which is this library and the default, or nccl")
	fs.IntVar(&o.Epochs, "epochs", o.Epochs, "`passes` over the training images")
	fs.IntVar(&o.Batch, "batch", o.Batch, "`samples` in a step, over all ranks together")
	fs.IntVar(&o.Images, "images", o.Images, "train on the first `images` of the set, and test on at most as many")
	fs.Float64Var(&o.BucketMiB, "bucket-mb", o.BucketMiB, "a gradient bucket is full from this size on, in `MiB`")
	fs.Float64Var(&o.FirstBucketMiB, "first-bucket-mb", o.FirstBucketMiB, "the same for the bucket that fires first, in `MiB`")
	fs.BoolVar(&o.NoOverlap, "no-overlap", o.NoOverlap, "communicate only after the backward pass")
	fs.Float64Var(&o.LR, "lr", o.LR, "peak learning `rate`")
	fs.Uint64Var(&o.Seed, "seed", o.Seed, "`seed` of everything random")
	fs.Var(&o.Link, "link", "shape the link between ranks to `rate[,latency]`, as in 1Gbps,50us or 200Mbps")
	fs.StringVar(&o.Dump, "dump", o.Dump, "write the final parameters to `file` (safetensors)")
	fs.StringVar(&o.JSON, "json", o.JSON, "write the result to `file` (JSON)")
	if err := fs.Parse(args); err != nil {
		return Options{}, err
	}
	if fs.NArg() > 0 {
		return Options{}, fmt.Errorf("ddp: unexpected argument %q: it takes flags only, see -h", fs.Arg(0))
	}
	if o.Device == CUDA {
		given := false
		fs.Visit(func(f *flag.Flag) { given = given || f.Name == "ranks" })
		if !given {
			o.Ranks = 0
		}
		o.Backend = cmp.Or(o.Backend, backends[0])
	}
	if err := o.Validate(); err != nil {
		return Options{}, err
	}
	return o, nil
}

func usage(fs *flag.FlagSet) {
	fmt.Fprintf(fs.Output(), "ddp trains a digit classifier on several rank processes of this machine.\n\nFlags:\n")
	fs.PrintDefaults()
}

// Validate returns all that is wrong with o, one line each, naming the flags.
func (o Options) Validate() error {
	var errs []error
	wrong := func(format string, args ...any) { errs = append(errs, fmt.Errorf("ddp: "+format, args...)) }
	switch {
	case o.Device != Host && o.Device != CUDA:
		wrong("-device %s: must be host or cuda", o.Device)
	case o.Device == Host && o.Backend != "":
		wrong("-backend %s: is for -device cuda", o.Backend)
	case o.Device == CUDA && !slices.Contains(backends, o.Backend):
		wrong("-backend %s: must be one of %s", o.Backend, strings.Join(backends, ", "))
	case o.Device == CUDA && !o.Link.IsZero():
		wrong("-link shapes what goes through this machine's memory: not with -device cuda")
	}
	if perGPU := o.Device == CUDA && o.Ranks == 0; (o.Ranks < 1 || o.Ranks > MaxRanks) && !perGPU {
		wrong("-ranks %d: must be 1 to %d", o.Ranks, MaxRanks)
	}
	if o.Epochs < 1 {
		wrong("-epochs %d: must be at least 1", o.Epochs)
	}
	if o.Images < 1 || o.Images > mnist.Train {
		wrong("-images %d: must be 1 to %d", o.Images, mnist.Train)
	}
	if o.Batch < 1 || o.Batch > o.Images {
		wrong("-batch %d: must be 1 to %d, the number of training images", o.Batch, o.Images)
	} else if o.Ranks >= 1 && o.Batch%o.Ranks != 0 {
		wrong("-batch %d: must be a multiple of -ranks %d, as all ranks take equal shares: try %d",
			o.Batch, o.Ranks, max(1, o.Batch/o.Ranks)*o.Ranks)
	}
	if !(o.BucketMiB > 0) || o.BucketMiB > maxBucketMiB {
		wrong("-bucket-mb %v: must be above 0 and at most %v", o.BucketMiB, maxBucketMiB)
	}
	if !(o.FirstBucketMiB > 0) || o.FirstBucketMiB > maxBucketMiB {
		wrong("-first-bucket-mb %v: must be above 0 and at most %v", o.FirstBucketMiB, maxBucketMiB)
	}
	if !(o.LR > 0) || math.IsInf(o.LR, 1) {
		wrong("-lr %v: must be a number above 0", o.LR)
	}
	if o.Dump != "" && o.Dump == o.JSON {
		wrong("-dump and -json both name %s: give two files", o.Dump)
	}
	return errors.Join(errs...)
}

const maxBucketMiB = 4096.0

// FirstBucketBytes is FirstBucketMiB in bytes.
func (o Options) FirstBucketBytes() int64 { return mib(o.FirstBucketMiB) }

// BucketBytes is BucketMiB in bytes.
func (o Options) BucketBytes() int64 { return mib(o.BucketMiB) }

func mib(m float64) int64 { return max(1, int64(m*(1<<20))) }
