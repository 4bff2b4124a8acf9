package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"

	"github.com/goccl/goccl"
	"github.com/goccl/goccl/autotune"
	"github.com/goccl/goccl/autotune/model"
	"github.com/goccl/goccl/dist"
	"github.com/goccl/goccl/dist/launch"
)

// tuneOptions is what the command line of `bench tune` asks for.
type tuneOptions struct {
	ranks    []int
	classes  []model.Class
	colls    []goccl.Collective
	min, max int64
	factor   int64
	rounds   int
	batch    float64 // microseconds
	prune    float64
	out      string
	points   string
	from     string
	explain  bool
	class    model.Class // of a rank
}

const tuneUsage = `Usage: bench tune [flags]

Measures every way to run the collectives on this machine, fits the tuner's
constants to it and prints what the tuner then chooses, what it predicts, what was
measured and what the choice loses against the fastest.

  go run ./bench tune -n 2,4 -o profile.json
  go run ./bench tune -n 2 -classes shm -colls allreduce -explain

Flags:
`

func parseTune(args []string) (*tuneOptions, error) {
	o := &tuneOptions{}
	fs := flag.NewFlagSet("bench tune", flag.ContinueOnError)
	fs.Usage = func() { fmt.Fprint(os.Stderr, tuneUsage); fs.PrintDefaults() }
	var ranks, classes, colls, least, most, class string
	fs.StringVar(&ranks, "n", "2,4", "numbers of ranks")
	fs.StringVar(&classes, "classes", "inproc,shm,network", "connections: goroutines, processes with shared memory, sockets")
	fs.StringVar(&colls, "colls", "allreduce,allgather,reducescatter,broadcast,reduce,alltoall", "collectives")
	fs.StringVar(&least, "b", "8", "smallest size in bytes, with K, M or G")
	fs.StringVar(&most, "e", "2M", "largest size")
	fs.Int64Var(&o.factor, "f", 8, "factor between sizes")
	fs.IntVar(&o.rounds, "rounds", 6, "turns of every candidate, interleaved, of four batches each; the time is that of the fastest batch")
	fs.Float64Var(&o.batch, "batch", 120, "microseconds of a batch; short ones fit between the interruptions of a busy machine")
	fs.Float64Var(&o.prune, "prune", 4, "leave out what is predicted to take so many times the least")
	fs.StringVar(&o.out, "o", "", "write the profile to this file")
	fs.StringVar(&o.points, "points", "", "write what was measured to this file, one JSON object a line")
	fs.StringVar(&o.from, "from", "", "measure nothing; use the points in this file")
	fs.BoolVar(&o.explain, "explain", false, "print every candidate with its predicted and measured time")
	fs.StringVar(&class, "rank-class", "shm", "of a rank that this program has started")
	if err := fs.Parse(args); err != nil {
		return nil, err
	}
	if fs.NArg() > 0 {
		return nil, fmt.Errorf("%q is not a flag", fs.Arg(0))
	}
	return o, o.fill(ranks, classes, colls, least, most, class)
}

func (o *tuneOptions) fill(ranks, classes, colls, least, most, class string) (err error) {
	for _, s := range strings.Split(ranks, ",") {
		n, err := strconv.Atoi(s)
		if err != nil || n < 2 || n > 64 {
			return fmt.Errorf("%q ranks; want numbers from 2 to 64", s)
		}
		o.ranks = append(o.ranks, n)
	}
	for _, s := range strings.Split(classes, ",") {
		c, ok := model.ParseClass(s)
		if !ok {
			return fmt.Errorf("no class of connections is called %q; there are inproc, shm and network", s)
		}
		o.classes = append(o.classes, c)
	}
	for _, s := range strings.Split(colls, ",") {
		c, err := goccl.ParseCollective(s)
		if err != nil {
			return err
		}
		o.colls = append(o.colls, c)
	}
	var ok bool
	if o.class, ok = model.ParseClass(class); !ok {
		return fmt.Errorf("no class of connections is called %q", class)
	}
	if o.min, err = parseSize(least); err != nil {
		return err
	}
	if o.max, err = parseSize(most); err != nil {
		return err
	}
	if o.min < 8 || o.max < o.min || o.factor < 2 || o.rounds < 1 || !(o.batch > 0) || !(o.prune >= 1) {
		return errors.New("want sizes from 8 bytes, a factor of 2 or more, at least one round, a batch above 0 and a prune of 1 or more")
	}
	return nil
}

// tune is the subcommand; it returns the exit code.
func tune(ctx context.Context, args []string) int {
	o, err := parseTune(args)
	if errors.Is(err, flag.ErrHelp) {
		return 0
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		return 2
	}
	if _, isRank := os.LookupEnv("RANK"); isRank {
		err = o.rank(ctx, dist.FromEnv())
	} else {
		err = o.run(ctx, args, os.Stdout)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		return 1
	}
	return 0
}

func (o *tuneOptions) run(ctx context.Context, args []string, w io.Writer) error {
	var points []autotune.Point
	var err error
	if o.from != "" {
		points, err = readPoints(o.from)
	} else {
		points, err = o.measure(ctx, args, w)
	}
	if err != nil {
		return err
	}
	prior, err := autotune.DefaultProfile()
	if err != nil {
		return err
	}
	m := autotune.Machine{CPU: cpuModel(), Cores: runtime.NumCPU(), OS: runtime.GOOS, Arch: runtime.GOARCH, Go: runtime.Version(),
		Note: fmt.Sprintf("fastest of %d batches of %.0f us in %d interleaved turns", o.rounds*turnBatches, o.batch, o.rounds)}
	p, err := autotune.Fit(points, prior, m, 1.1)
	if err != nil {
		return err
	}
	if err := o.report(w, p, points); err != nil {
		return err
	}
	if o.points != "" {
		if err := writePoints(o.points, points); err != nil {
			return err
		}
	}
	if o.out == "" {
		return nil
	}
	if err := p.Save(o.out); err != nil {
		return err
	}
	_, err = fmt.Fprintf(w, "# profile %s written to %s\n", p.Hash(), o.out)
	return err
}

// measure runs the ranks, once for each class and number.
func (o *tuneOptions) measure(ctx context.Context, args []string, w io.Writer) ([]autotune.Point, error) {
	dir, err := os.MkdirTemp("", "goccl-tune-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	var all []autotune.Point
	for _, class := range o.classes {
		for _, n := range o.ranks {
			if _, err := fmt.Fprintf(w, "# measuring %v, %d ranks\n", class, n); err != nil {
				return nil, err
			}
			path := filepath.Join(dir, "points")
			if class == model.Inproc {
				local := *o
				local.class, local.points = class, path
				cfg := dist.FromEnv()
				cfg.Local = n
				err = local.rank(ctx, cfg)
			} else {
				command := append([]string{self, "tune"}, args...)
				command = append(command, "-rank-class", class.String(), "-points", path)
				err = runRanks(ctx, n, command)
			}
			if err != nil {
				return nil, err
			}
			points, err := readPoints(path)
			if err != nil {
				return nil, err
			}
			all = append(all, points...)
		}
	}
	return all, nil
}

func runRanks(ctx context.Context, n int, command []string) error {
	job, err := launch.Start(ctx, launch.Spec{N: n, Command: command, Stdout: os.Stdout, Stderr: os.Stderr})
	if err != nil {
		return err
	}
	return job.Wait()
}

func readPoints(path string) ([]autotune.Point, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	var out []autotune.Point
	for d := json.NewDecoder(f); ; {
		var p autotune.Point
		if err := d.Decode(&p); errors.Is(err, io.EOF) {
			return out, nil
		} else if err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		out = append(out, p)
	}
}

func writePoints(path string, points []autotune.Point) error {
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	e := json.NewEncoder(f)
	for i := range points {
		err = errors.Join(err, e.Encode(&points[i]))
	}
	return errors.Join(err, f.Close())
}
