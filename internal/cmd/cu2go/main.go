// Command cu2go makes what is committed of the CUDA kernels from their sources. It
// needs neither driver nor GPU.
//
//	cu2go abi DIR                    writes the structs and constants that kernels and
//	                                 host share, both sides, into DIR
//	cu2go install [-cache DIR]       puts the pinned compiler library into a cache, when
//	                                 it is not there yet, and prints its path
//	cu2go gen -nvrtc LIBRARY DIR     compiles DIR/*.cu into DIR/bin and writes
//	                                 DIR/kernels.lock
//	cu2go verify -nvrtc LIBRARY DIR  compiles them and fails when what is committed
//	                                 differs
//
// The Makefile has them as gen and gen-verify. Only install uses the network.
package main

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"

	"github.com/goccl/goccl/device/kernels/abi/table"
	"github.com/goccl/goccl/internal/cmd/cu2go/toolchain"
)

func main() {
	err := run(os.Args[1:])
	if errors.Is(err, flag.ErrHelp) {
		os.Exit(2)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "cu2go:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	usage := errors.New("usage: cu2go abi DIR | install [-cache DIR] | gen -nvrtc LIBRARY DIR | verify -nvrtc LIBRARY DIR")
	if len(args) == 0 {
		return usage
	}
	flags := flag.NewFlagSet("cu2go "+args[0], flag.ContinueOnError)
	library := flags.String("nvrtc", "", "path of libnvrtc.so; install prints it")
	cache := flags.String("cache", "", "folder for the compiler; the user's cache folder by default")
	if err := flags.Parse(args[1:]); err != nil {
		return err
	}
	dir := flags.Arg(0)
	switch {
	case args[0] == "abi" && flags.NArg() == 1:
		return writeABI(dir)
	case args[0] == "install" && flags.NArg() == 0:
		path, err := toolchain.Install(*cache, os.Stderr)
		if err == nil {
			fmt.Println(path)
		}
		return err
	case args[0] == "gen" && *library != "" && flags.NArg() == 1:
		return generate(*library, dir)
	case args[0] == "verify" && *library != "" && flags.NArg() == 1:
		return verify(*library, dir, os.Stdout)
	}
	return usage
}

// writeABI writes the generated files of package abi into dir.
func writeABI(dir string) error {
	files, err := table.Files(table.Groups())
	if err != nil {
		return err
	}
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(dir, name), text, 0o644); err != nil {
			return err
		}
	}
	return nil
}
