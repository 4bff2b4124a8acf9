// Command getnccl puts a version of NCCL that the tests know into the user's cache
// and prints the path of its libnccl.so.2:
//
//	go run ./internal/cmd/getnccl 2.28.9
//
// It needs Python 3 with pip, and no GPU: without a driver the library loads, and
// says its version.
package main

import (
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/goccl/goccl/internal/wheel"
)

const library = "nvidia/nccl/lib/libnccl.so.2"

// pins are the hashes of nvidia-nccl-cu12's wheels.
var pins = map[string]map[string]string{
	"2.20.5": {
		"amd64": "057f6bf9685f75215d0c53bf3ac4a10b3e6578351de307abad9e18a99182af56",
		"arm64": "1fc150d5c3250b170b29410ba682384b14581db722b2531b0d8d33c595f33d01",
	},
	"2.24.3": {
		"amd64": "e5c5167351e8936b96ddad8ac6f687199e22d09db07cf08af9457a123b34cac0",
		"arm64": "ac876961433514a2943ba238f390fa28616fd8252906127e28e9714eda355d09",
	},
	"2.28.9": {
		"amd64": "485776daa8447da5da39681af455aa3b2c2586ddcf4af8772495e7c532c7e5ab",
		"arm64": "50a36e01c4a090b9f9c47d92cec54964de6b9fcb3362d0e19b8ffc6323c21b60",
	},
	"2.32.3": {
		"amd64": "bb94b2348e4861d5e8aa00b36c3d12d9bdf9c6369b82cbb723de0b582280a21c",
		"arm64": "061af42ae1044816820e16b872075e243d1ac0656f51860fbc8e106c257aa83a",
	},
}

func main() {
	cache := flag.String("cache", "", "folder to put it in; \"\": goccl's in the user's cache")
	flag.Usage = func() {
		fmt.Fprintf(os.Stderr, "Usage: getnccl [-cache FOLDER] %s\n", strings.Join(slices.Sorted(maps.Keys(pins)), "|"))
	}
	flag.Parse()
	hashes, known := pins[flag.Arg(0)]
	if flag.NArg() != 1 || !known {
		flag.Usage()
		os.Exit(2)
	}
	p := wheel.Pin{Package: "nvidia-nccl-cu12", Version: flag.Arg(0), Linux: map[string]wheel.Wheel{}}
	for arch, hash := range hashes {
		p.Linux[arch] = wheel.Wheel{Hash: hash, Files: map[string]string{library: "", "nvidia/nccl/include/nccl.h": ""}}
	}
	dir, err := p.Install(*cache, os.Stderr)
	if err != nil {
		fmt.Fprintln(os.Stderr, "getnccl:", err)
		os.Exit(1)
	}
	fmt.Println(filepath.Join(dir, filepath.FromSlash(library)))
}
