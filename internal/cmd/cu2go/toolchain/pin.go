// Package toolchain puts the pinned kernel compiler, NVRTC, into a cache. It comes as
// a Python wheel, of which two libraries are all that is needed; see package wheel.
package toolchain

import "github.com/goccl/goccl/internal/wheel"

// Version is the version of NVRTC. Images that another one makes differ, so a new
// version means make gen and a look at kernels.lock.
const Version = "12.9.86"

// folder is where the libraries lie in the wheel. mainLibrary is the one that is
// opened; the other one is opened by it, from the same folder.
const (
	folder      = "nvidia/cuda_nvrtc/lib"
	mainLibrary = "libnvrtc.so.12"
	builtins    = "libnvrtc-builtins.so.12.9"
)

var pinned = wheel.Pin{Package: "nvidia-cuda-nvrtc-cu12", Version: Version, Linux: map[string]wheel.Wheel{
	"amd64": {
		Hash: "210cf05005a447e29214e9ce50851e83fc5f4358df8b453155d5e1918094dcb4",
		Files: map[string]string{
			folder + "/" + mainLibrary: "7c67c6b51ea0e0279634cebd676ff7efda1674806444520c84430ad5c35fe625",
			folder + "/" + builtins:    "6507cf33450cfb22970c2c1e7aa8e7c0a33e39d864720277b05f61a92791e2e8",
		},
	},
	"arm64": {
		Hash: "096d4de6bda726415dfaf3198d4f5c522b8e70139c97feef5cd2ca6d4cd9cead",
		Files: map[string]string{
			folder + "/" + mainLibrary: "3a599a1649813776e6852024ba6c3a2fc291a0eab61745864261aa449f8d2b7d",
			folder + "/" + builtins:    "fa791107a53e7e38bbcf28cd8223c62bd91445227634537d1e71a4b3cbd6920d",
		},
	},
}}
