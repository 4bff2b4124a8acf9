// Command bench times collectives as nccl-tests does and prints its columns:
// size, count, type, redop, root, then time, algbw, busbw and wrong elements, out
// of place and in place.
//
//	go run ./bench allreduce -b 8 -e 64M -f 2 -n 4
//	go run ./bench broadcast -n 2 -d bf16 -root 1 -json rows.json
//	go run ./bench allreduce -threads 4
//	go run ./bench allreduce -n 2 -backend nccl -vs nccl -e 1G
//	go run ./bench tune -n 2,4 -o profile.json
//
// -n ranks are processes of this machine; -threads ranks are goroutines of one
// process. Under a launcher (RANK, WORLD_SIZE and MASTER_ADDR set) every process
// is one rank.
//
// -backend nccl times NCCL on GPUs, one for each rank: a batch is queued on a stream
// and its time ends when the stream is done. -vs nccl times NCCL beside the backend
// in turns, as it is and with its CTAs set. Where NCCL or GPUs are missing, bench says
// how to get them and exits with 2.
//
// Bandwidths are those of nccl-tests: algbw is bytes/time, busbw is algbw times
// 2(n-1)/n for allreduce, (n-1)/n for allgather, reducescatter, alltoall, gather
// and scatter, 1 for the others; GB is 1e9 bytes. Size is the larger of a rank's
// send and receive buffer.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/goccl/goccl"
	"github.com/goccl/goccl/dist"
	"github.com/goccl/goccl/dist/launch"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	os.Exit(run(ctx, os.Args[1:]))
}

// run is the whole program; it returns the exit code: 0, 1 for wrong results or
// a failure, 2 for wrong arguments and for what this machine cannot measure, or that
// of the first rank that failed.
func run(ctx context.Context, args []string) int {
	if len(args) > 0 && args[0] == "tune" {
		return tune(ctx, args[1:])
	}
	o, err := parse(args)
	if errors.Is(err, flag.ErrHelp) {
		return 0
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		return 2
	}
	_, isRank := os.LookupEnv("RANK")
	if err = multicastOff(); err == nil {
		err = o.absent(o.needed(isRank))
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		return 2
	}
	switch {
	case isRank:
		err = dist.Run(ctx, dist.FromEnv(), func(ctx context.Context, g *dist.Group) error { return measure(ctx, g, o, os.Stdout) })
	case o.threads > 0:
		err = threads(ctx, o)
	default:
		return processes(ctx, o, args)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		if errors.Is(err, goccl.ErrUnsupported) {
			return 2
		}
		return 1
	}
	return 0
}

// needed is how many ranks this process must find GPUs for: itself, or all that it
// starts.
func (o *options) needed(isRank bool) int {
	switch {
	case isRank:
		return 1
	case o.threads > 0:
		return o.threads
	}
	return o.ranks
}

// threads runs the ranks as goroutines of this process.
func threads(ctx context.Context, o *options) error {
	cfg := dist.FromEnv()
	cfg.Local = o.threads
	return dist.Run(ctx, cfg, func(ctx context.Context, g *dist.Group) error { return measure(ctx, g, o, os.Stdout) })
}

// processes starts this program once for each rank.
func processes(ctx context.Context, o *options, args []string) int {
	self, err := os.Executable()
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		return 1
	}
	job, err := launch.Start(ctx, launch.Spec{N: o.ranks, Command: append([]string{self}, args...), Stdout: os.Stdout, Stderr: os.Stderr})
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		return 1
	}
	if err := job.Wait(); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		return launch.ExitCode(err)
	}
	return 0
}
