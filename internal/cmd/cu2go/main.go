// Command cu2go makes what is committed of the CUDA kernels from their sources.
//
//	cu2go abi DIR    writes the shared structs and constants, both sides, into DIR
package main

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/goccl/goccl/device/kernels/abi/table"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "cu2go:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	if len(args) == 2 && args[0] == "abi" {
		return writeABI(args[1])
	}
	return fmt.Errorf("usage: cu2go abi DIR")
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
