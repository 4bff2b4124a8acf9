package libnccl

import (
	"fmt"
	"strings"

	"github.com/goccl/goccl"
	"github.com/goccl/goccl/internal/dl"
)

// symbol is the number of a function in the table.
type symbol int

const (
	symGetVersion symbol = iota
	symGetErrorString
	symGetLastError
	symGetUniqueID
	symCommInitRankConfig
	symCommInitRankScalable
	symCommSplit
	symCommFinalize
	symCommDestroy
	symCommAbort
	symCommGetAsyncError
	symCommCount
	symCommCuDevice
	symCommUserRank
	symGroupStart
	symGroupEnd
	symAllReduce
	symReduce
	symBroadcast
	symAllGather
	symReduceScatter
	symSend
	symRecv
	symRedOpCreatePreMulSum
	symRedOpDestroy
	symMemAlloc
	symMemFree
	symCommRegister
	symCommDeregister
	symCommWindowRegister
	symCommWindowDeregister

	numSymbols
)

// functions holds, for each symbol, its name and the version that brought it. One
// that is not newer than Oldest must be there.
var functions = [numSymbols]struct {
	name  string
	since Version
}{
	symGetVersion:           {"ncclGetVersion", 0},
	symGetErrorString:       {"ncclGetErrorString", 0},
	symGetLastError:         {"ncclGetLastError", 21300},
	symGetUniqueID:          {"ncclGetUniqueId", 0},
	symCommInitRankConfig:   {"ncclCommInitRankConfig", 21400},
	symCommInitRankScalable: {"ncclCommInitRankScalable", 22300},
	symCommSplit:            {"ncclCommSplit", 21800},
	symCommFinalize:         {"ncclCommFinalize", 21400},
	symCommDestroy:          {"ncclCommDestroy", 0},
	symCommAbort:            {"ncclCommAbort", 0},
	symCommGetAsyncError:    {"ncclCommGetAsyncError", 0},
	symCommCount:            {"ncclCommCount", 0},
	symCommCuDevice:         {"ncclCommCuDevice", 0},
	symCommUserRank:         {"ncclCommUserRank", 0},
	symGroupStart:           {"ncclGroupStart", 0},
	symGroupEnd:             {"ncclGroupEnd", 0},
	symAllReduce:            {"ncclAllReduce", 0},
	symReduce:               {"ncclReduce", 0},
	symBroadcast:            {"ncclBroadcast", 0},
	symAllGather:            {"ncclAllGather", 0},
	symReduceScatter:        {"ncclReduceScatter", 0},
	symSend:                 {"ncclSend", 20700},
	symRecv:                 {"ncclRecv", 20700},
	symRedOpCreatePreMulSum: {"ncclRedOpCreatePreMulSum", 21100},
	symRedOpDestroy:         {"ncclRedOpDestroy", 21100},
	symMemAlloc:             {"ncclMemAlloc", 21900},
	symMemFree:              {"ncclMemFree", 21900},
	symCommRegister:         {"ncclCommRegister", 21900},
	symCommDeregister:       {"ncclCommDeregister", 21900},
	symCommWindowRegister:   {"ncclCommWindowRegister", 22700},
	symCommWindowDeregister: {"ncclCommWindowDeregister", 22700},
}

// table is the functions of a loaded library; 0 where it has none.
type table [numSymbols]dl.Func

// resolve looks all functions up. A library must have what its version promises.
func resolve(l *dl.Library) (*table, error) {
	t := new(table)
	rows := make([]dl.Symbol, numSymbols)
	for s, f := range functions {
		rows[s] = dl.Symbol{Name: f.name, Into: &t[s], Optional: f.since > Oldest}
	}
	if err := l.Resolve(rows); err != nil {
		return nil, err
	}
	return t, nil
}

// complete holds the optional functions against the version.
func (t *table) complete(v Version) error {
	var missing []string
	for s, f := range functions {
		if t[s] == 0 && f.since <= v {
			missing = append(missing, f.name)
		}
	}
	if missing != nil {
		return fmt.Errorf("%w: the library says it is NCCL %v but lacks %s", goccl.ErrUnsupported, v, strings.Join(missing, ", "))
	}
	return nil
}
