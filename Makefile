# Everything here needs Go and make; race also needs a C compiler.
GO          ?= go
STATICCHECK ?= honnef.co/go/tools/cmd/staticcheck@v0.8.2
PKGS        ?= ./...
RACE_PKGS   ?= ./...
FUZZTIME    ?= 3s
BENCH       ?= allreduce -b 8 -e 64K -f 8 -n 2
TESTFLAGS   ?=
NCCL        ?= 2.28.9

# go-nvml binds functions that NVIDIA has deprecated. Its compiler warnings, where cgo
# compiles it, say nothing of this module.
export CGO_CFLAGS ?= -O2 -g -Wno-deprecated-declarations

.PHONY: help build test race check vet staticcheck policy fmt bench fuzz cross gen gen-verify test-nccl nightly

help: ## list the targets
	@grep -E '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## /\1\t/' | sort

build: ## compile everything, without cgo
	CGO_ENABLED=0 $(GO) build ./...

test: ## all tests, without cgo: needs nothing but Go
	CGO_ENABLED=0 $(GO) test -shuffle=on -count=1 $(TESTFLAGS) $(PKGS)

# The tag builds a test that fails unless the race detector is on.
race: ## tests with the race detector: needs a C compiler
	CGO_ENABLED=1 $(GO) test -race -tags=racecanary -shuffle=on -count=1 $(TESTFLAGS) $(RACE_PKGS)

check: fmt vet staticcheck policy ## what must hold before a commit, tests aside

fmt: ## list files that gofmt would change
	@out=$$(gofmt -l .); \
	if [ -n "$$out" ]; then echo "not gofmt-clean:"; echo "$$out"; exit 1; fi

vet:
	CGO_ENABLED=0 $(GO) vet ./...

staticcheck:
	CGO_ENABLED=0 $(GO) run $(STATICCHECK) ./...

policy: ## the import graph, sizes, comments and habits
	CGO_ENABLED=0 $(GO) test -count=1 -run 'Import|Rules|Pure' .
	CGO_ENABLED=0 $(GO) test -count=1 ./policy/...

bench: ## a short run of the benchmark, to see that it works
	@if [ "$$($(GO) list -f '{{.Name}}' ./bench 2>/dev/null)" = main ]; then $(GO) run ./bench $(BENCH); else echo "there is no program in ./bench"; fi

fuzz: ## every fuzz target for FUZZTIME
	GO='$(GO)' policy/fuzz.sh $(FUZZTIME)

# With cgo, building the standard library's net needs a C compiler.
cross: ## the other systems and processors
	CGO_ENABLED=0 GOOS=linux GOARCH=amd64 $(GO) build ./...
	@if command -v $${CC:-gcc} >/dev/null; then CGO_ENABLED=1 GOOS=linux $(GO) build ./...; \
	else echo "no C compiler: the build with CGO_ENABLED=1 is left out"; fi
	CGO_ENABLED=0 GOOS=linux GOARCH=arm64 $(GO) build ./...
	CGO_ENABLED=0 GOOS=linux GOARCH=arm64 $(GO) vet ./...
	CGO_ENABLED=0 GOOS=darwin GOARCH=arm64 $(GO) build ./...
	CGO_ENABLED=0 GOOS=windows GOARCH=amd64 $(GO) build ./...

# Compiling kernels needs NVRTC, which pip brings into the user's cache: Python 3 with
# pip, and the network the first time. No GPU.
CU2GO = CGO_ENABLED=0 $(GO) run ./internal/cmd/cu2go

gen: ## what is generated for CUDA: shared structs, compiled kernels
	$(CU2GO) abi device/kernels/abi
	nvrtc=$$($(CU2GO) install) && $(CU2GO) gen -nvrtc "$$nvrtc" device/kernels

gen-verify: ## compile the kernels again and compare with what is committed
	nvrtc=$$($(CU2GO) install) && $(CU2GO) verify -nvrtc "$$nvrtc" device/kernels
	CGO_ENABLED=0 GOCCL_REQUIRE=nvrtc $(GO) test ./internal/cmd/cu2go/...

# pip brings the library into the user's cache: Python 3 with pip, and the network the
# first time. No GPU.
test-nccl: ## the NCCL binding against the versions in NCCL
	@set -e; for v in $(NCCL); do \
		lib=$$($(GO) run ./internal/cmd/getnccl $$v); \
		echo "NCCL $$v at $$lib"; \
		CGO_ENABLED=0 GOCCL_REQUIRE=libnccl GOCCL_TEST_NCCL_LIB=$$lib $(GO) test -count=1 ./process_group/backend/nccl/libnccl; \
	done

nightly: ## the long forms: whole products of cases, long fuzzing
	GOCCL_NIGHTLY=1 $(MAKE) test TESTFLAGS='-timeout=2h'
	$(MAKE) race TESTFLAGS='-timeout=2h'
	$(MAKE) fuzz FUZZTIME=5m
	$(MAKE) test-nccl NCCL='2.20.5 2.24.3 2.28.9 2.32.3'
