// Package build compiles the kernels of a folder for every target and says what
// came out: images, and the lock that records what they were made from. The
// compiler is handed to it, so that all decisions can be tested without one.
package build

// Flags are the options of every compilation. No multiplication is fused with an
// addition unless the source says so, so that the host computes the same bits.
// Nothing is read from the disk. There are no line numbers: they would bring paths
// into the images.
var Flags = []string{"--std=c++17", "--fmad=false", "--no-source-include", "--ptxas-options=-v"}

// Target is a kind of GPU for which kernels are compiled.
type Target struct {
	Arch string // as the compiler calls it
	Ext  string // of the committed file, "" for none
	PTX  bool
}

// Targets are what is compiled. A cubin runs on GPUs of its major version. PTX is
// for all others from sm_70; the driver compiles it. How many registers it takes is
// not in the compiler's report for PTX, so sm_70 itself is compiled for that alone.
var Targets = []Target{
	{Arch: "sm_80", Ext: "sm_80.cubin"},
	{Arch: "sm_90", Ext: "sm_90.cubin"},
	{Arch: "sm_70"},
	{Arch: "compute_70", Ext: "compute_70.ptx", PTX: true},
}

// Options are the compiler's options for t.
func (t Target) Options() []string {
	return append([]string{"--gpu-architecture=" + t.Arch}, Flags...)
}
