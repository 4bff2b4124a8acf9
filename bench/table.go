package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"runtime"
	"slices"
	"strings"

	"github.com/goccl/goccl/dist"
)

// table prints rows as nccl-tests does, on rank 0, and writes them to a file.
type table struct {
	o      *options
	g      *dist.Group
	sides  []*side
	w      io.Writer
	sum    float64 // of busbw
	n      int
	silent bool
}

func newTable(o *options, g *dist.Group, sides []*side, w io.Writer) *table {
	return &table{o: o, g: g, sides: sides, w: w, silent: g.Rank() != 0}
}

// rows prints one size, out of place and in place, of which the second may be nil.
func (t *table) rows(out, in []*row) error {
	if t.silent {
		return nil
	}
	for _, r := range slices.Concat(out, in) {
		t.sum += r.BusBW
		t.n++
		if t.o.json != "" {
			if err := appendJSON(t.o.json, r); err != nil {
				return err
			}
		}
	}
	if len(t.sides) > 1 {
		return t.versus(out, in)
	}
	if in == nil {
		in = []*row{nil}
	}
	return t.row(out[0], in[0])
}

func (t *table) begin() error {
	if t.silent {
		return nil
	}
	kind := "processes"
	if t.o.threads > 0 {
		kind = "goroutines"
	}
	state := "warm buffers"
	if t.o.cold {
		state = "cold: input rewritten before every operation"
	}
	b := &strings.Builder{}
	fmt.Fprintf(b, "# goccl bench %v: %d ranks as %s, transport %s, median of %d batches, %s\n", t.o.coll, t.g.Size(), kind, t.sides[0].g.Transport(), t.o.batches, state)
	fmt.Fprintf(b, "# %s, %d cores, GOMAXPROCS %d, %s/%s, %s\n", cpuModel(), runtime.NumCPU(), runtime.GOMAXPROCS(0), runtime.GOOS, runtime.GOARCH, runtime.Version())
	for _, s := range t.sides {
		if s.about != "" {
			fmt.Fprintf(b, "# %s: %s\n", s.name, s.about)
		}
	}
	if len(t.sides) > 1 {
		return t.beginVersus(b)
	}
	fmt.Fprintf(b, "#\n# %50s %35s\n", "out-of-place", "in-place")
	fmt.Fprintf(b, "# %10s %11s %6s %6s %5s %9s %7s %7s %6s %9s %7s %7s %6s  %s\n", "size", "count", "type", "redop", "root",
		"time", "algbw", "busbw", "#wrong", "time", "algbw", "busbw", "#wrong", "algorithm/protocol")
	fmt.Fprintf(b, "# %10s %11s %6s %6s %5s %9s %7s %7s %6s %9s %7s %7s %6s\n", "(B)", "(elements)", "", "", "", "(us)", "(GB/s)", "(GB/s)", "", "(us)", "(GB/s)", "(GB/s)", "")
	_, err := io.WriteString(t.w, b.String())
	return err
}

func (t *table) row(out, in *row) error {
	_, err := fmt.Fprintf(t.w, "  %10d %11d %6s %6s %5d %s %s  %s/%s\n", out.Bytes, out.Count, out.DType, out.Redop, out.Root, cells(out), cells(in), out.Algo, out.Proto)
	return err
}

func cells(r *row) string {
	if r == nil {
		return fmt.Sprintf("%9s %7s %7s %6s", "-", "-", "-", "-")
	}
	wrong := "N/A"
	if r.Wrong >= 0 {
		wrong = fmt.Sprint(r.Wrong)
	}
	prec := 2
	if r.TimeUS >= 1000 {
		prec = 0
	}
	return fmt.Sprintf("%9.*f %7.2f %7.2f %6s", prec, r.TimeUS, r.AlgBW, r.BusBW, wrong)
}

func (t *table) end(wrong int64) error {
	if t.silent {
		return nil
	}
	verdict := "OK"
	if wrong > 0 {
		verdict = "FAILED"
	}
	if !t.o.check {
		verdict = "not checked"
	}
	_, err := fmt.Fprintf(t.w, "# Wrong elements : %d %s\n# Avg bus bandwidth : %.3f GB/s\n", wrong, verdict, t.sum/float64(max(t.n, 1)))
	return err
}

func appendJSON(path string, r *row) error {
	f, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	err = json.NewEncoder(f).Encode(r)
	if e := f.Close(); err == nil {
		err = e
	}
	return err
}

// cpuModel names the processor where the system tells.
func cpuModel() string {
	f, err := os.Open("/proc/cpuinfo")
	if err != nil {
		return runtime.GOARCH
	}
	defer f.Close()
	for s := bufio.NewScanner(f); s.Scan(); {
		if name, value, ok := strings.Cut(s.Text(), ":"); ok && strings.TrimSpace(name) == "model name" {
			return strings.TrimSpace(value)
		}
	}
	return runtime.GOARCH
}
