// Package toolchain puts the pinned kernel compiler, NVRTC, into a cache. It comes as
// a Python wheel, an archive of which two libraries are all that is needed; pip
// brings it, with the index, proxy and certificates that the user has set up for
// pip.
package toolchain

import "runtime"

// Version is the version of NVRTC. Images that another one makes differ, so a new
// version means make gen and a look at kernels.lock.
const Version = "12.9.86"

// wheel is the package's name.
const wheel = "nvidia-cuda-nvrtc-cu12"

// main is the library that is opened. The other one is opened by it, from the same
// folder.
const mainLibrary = "libnvrtc.so.12"

// pin is the compiler for one processor: the hash of its wheel and of the libraries
// in it.
type pin struct {
	machine string // as in the name of the wheel
	wheel   string
	library map[string]string // by file name
}

// pins are by GOARCH. All files are hashed with SHA-256.
var pins = map[string]pin{
	"amd64": {
		machine: "x86_64",
		wheel:   "210cf05005a447e29214e9ce50851e83fc5f4358df8b453155d5e1918094dcb4",
		library: map[string]string{
			mainLibrary:                 "7c67c6b51ea0e0279634cebd676ff7efda1674806444520c84430ad5c35fe625",
			"libnvrtc-builtins.so.12.9": "6507cf33450cfb22970c2c1e7aa8e7c0a33e39d864720277b05f61a92791e2e8",
		},
	},
	"arm64": {
		machine: "aarch64",
		wheel:   "096d4de6bda726415dfaf3198d4f5c522b8e70139c97feef5cd2ca6d4cd9cead",
		library: map[string]string{
			mainLibrary:                 "3a599a1649813776e6852024ba6c3a2fc291a0eab61745864261aa449f8d2b7d",
			"libnvrtc-builtins.so.12.9": "fa791107a53e7e38bbcf28cd8223c62bd91445227634537d1e71a4b3cbd6920d",
		},
	},
}

// current is the pin for this machine.
func current() (pin, bool) {
	p, ok := pins[runtime.GOARCH]
	return p, ok && runtime.GOOS == "linux"
}
