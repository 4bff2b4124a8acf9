package cuda

// proc is one function of the driver that this package calls.
type proc uint8

// The functions. Where the library exports several versions of one, the suffix
// that its header would choose is in procNames.
const (
	cuInit proc = iota
	cuDriverGetVersion
	cuGetErrorName
	cuGetErrorString

	cuDeviceGetCount
	cuDeviceGet
	cuDeviceGetName
	cuDeviceGetUUID
	cuDeviceGetPCIBusID
	cuDeviceTotalMem
	cuDeviceGetAttribute
	cuDeviceCanAccessPeer
	cuDeviceGetP2PAttribute
	cuDevicePrimaryCtxRetain
	cuDevicePrimaryCtxRelease

	cuCtxPushCurrent
	cuCtxPopCurrent
	cuCtxGetDevice
	cuCtxGetStreamPriorityRange
	cuCtxEnablePeerAccess

	cuStreamCreateWithPriority
	cuStreamDestroy
	cuStreamGetCtx
	cuStreamGetPriority
	cuStreamWaitEvent
	cuStreamIsCapturing
	cuStreamBeginCapture
	cuStreamEndCapture
	cuThreadExchangeStreamCaptureMode

	cuEventCreate
	cuEventDestroy
	cuEventRecord
	cuEventQuery
	cuEventElapsedTime

	cuMemGetInfo
	cuMemAlloc
	cuMemFree
	cuMemHostAlloc
	cuMemFreeHost
	cuMemHostRegister
	cuMemHostUnregister
	cuMemHostGetDevicePointer
	cuMemcpyAsync
	cuMemcpyPeerAsync
	cuMemsetD8Async
	cuMemsetD32Async

	cuMemPoolCreate
	cuMemPoolDestroy
	cuMemPoolSetAttribute
	cuMemPoolSetAccess
	cuMemPoolTrimTo
	cuMemAllocFromPoolAsync
	cuMemFreeAsync

	cuMemGetAllocationGranularity
	cuMemCreate
	cuMemRelease
	cuMemAddressReserve
	cuMemAddressFree
	cuMemMap
	cuMemUnmap
	cuMemSetAccess
	cuMemExportToShareableHandle
	cuMemImportFromShareableHandle

	cuPointerGetAttributes

	cuIpcGetMemHandle
	cuIpcOpenMemHandle
	cuIpcCloseMemHandle
	cuIpcGetEventHandle
	cuIpcOpenEventHandle

	cuStreamWaitValue32
	cuStreamWaitValue64
	cuStreamWriteValue32
	cuStreamWriteValue64
	cuStreamBatchMemOp

	cuModuleLoadDataEx
	cuModuleUnload
	cuModuleGetFunction
	cuModuleGetGlobal
	cuFuncLoad
	cuFuncGetAttribute
	cuFuncSetAttribute
	cuOccupancyMaxActiveBlocksPerMultiprocessor
	cuLaunchKernelEx

	cuGraphInstantiateWithFlags
	cuGraphLaunch
	cuGraphExecDestroy
	cuGraphDestroy

	procCount
)

// optional functions came after minVersion; all others are in every driver that
// is taken.
var optional = map[proc]bool{cuFuncLoad: true} // 12.4

// procNames are the exported names.
var procNames = [procCount]string{
	cuInit:             "cuInit",
	cuDriverGetVersion: "cuDriverGetVersion",
	cuGetErrorName:     "cuGetErrorName",
	cuGetErrorString:   "cuGetErrorString",

	cuDeviceGetCount:          "cuDeviceGetCount",
	cuDeviceGet:               "cuDeviceGet",
	cuDeviceGetName:           "cuDeviceGetName",
	cuDeviceGetUUID:           "cuDeviceGetUuid_v2",
	cuDeviceGetPCIBusID:       "cuDeviceGetPCIBusId",
	cuDeviceTotalMem:          "cuDeviceTotalMem_v2",
	cuDeviceGetAttribute:      "cuDeviceGetAttribute",
	cuDeviceCanAccessPeer:     "cuDeviceCanAccessPeer",
	cuDeviceGetP2PAttribute:   "cuDeviceGetP2PAttribute",
	cuDevicePrimaryCtxRetain:  "cuDevicePrimaryCtxRetain",
	cuDevicePrimaryCtxRelease: "cuDevicePrimaryCtxRelease_v2",

	cuCtxPushCurrent:            "cuCtxPushCurrent_v2",
	cuCtxPopCurrent:             "cuCtxPopCurrent_v2",
	cuCtxGetDevice:              "cuCtxGetDevice",
	cuCtxGetStreamPriorityRange: "cuCtxGetStreamPriorityRange",
	cuCtxEnablePeerAccess:       "cuCtxEnablePeerAccess",

	cuStreamCreateWithPriority:        "cuStreamCreateWithPriority",
	cuStreamDestroy:                   "cuStreamDestroy_v2",
	cuStreamGetCtx:                    "cuStreamGetCtx",
	cuStreamGetPriority:               "cuStreamGetPriority",
	cuStreamWaitEvent:                 "cuStreamWaitEvent",
	cuStreamIsCapturing:               "cuStreamIsCapturing",
	cuStreamBeginCapture:              "cuStreamBeginCapture_v2",
	cuStreamEndCapture:                "cuStreamEndCapture",
	cuThreadExchangeStreamCaptureMode: "cuThreadExchangeStreamCaptureMode",

	cuEventCreate:      "cuEventCreate",
	cuEventDestroy:     "cuEventDestroy_v2",
	cuEventRecord:      "cuEventRecord",
	cuEventQuery:       "cuEventQuery",
	cuEventElapsedTime: "cuEventElapsedTime",

	cuMemGetInfo:              "cuMemGetInfo_v2",
	cuMemAlloc:                "cuMemAlloc_v2",
	cuMemFree:                 "cuMemFree_v2",
	cuMemHostAlloc:            "cuMemHostAlloc",
	cuMemFreeHost:             "cuMemFreeHost",
	cuMemHostRegister:         "cuMemHostRegister_v2",
	cuMemHostUnregister:       "cuMemHostUnregister",
	cuMemHostGetDevicePointer: "cuMemHostGetDevicePointer_v2",
	cuMemcpyAsync:             "cuMemcpyAsync",
	cuMemcpyPeerAsync:         "cuMemcpyPeerAsync",
	cuMemsetD8Async:           "cuMemsetD8Async",
	cuMemsetD32Async:          "cuMemsetD32Async",

	cuMemPoolCreate:         "cuMemPoolCreate",
	cuMemPoolDestroy:        "cuMemPoolDestroy",
	cuMemPoolSetAttribute:   "cuMemPoolSetAttribute",
	cuMemPoolSetAccess:      "cuMemPoolSetAccess",
	cuMemPoolTrimTo:         "cuMemPoolTrimTo",
	cuMemAllocFromPoolAsync: "cuMemAllocFromPoolAsync",
	cuMemFreeAsync:          "cuMemFreeAsync",

	cuMemGetAllocationGranularity:  "cuMemGetAllocationGranularity",
	cuMemCreate:                    "cuMemCreate",
	cuMemRelease:                   "cuMemRelease",
	cuMemAddressReserve:            "cuMemAddressReserve",
	cuMemAddressFree:               "cuMemAddressFree",
	cuMemMap:                       "cuMemMap",
	cuMemUnmap:                     "cuMemUnmap",
	cuMemSetAccess:                 "cuMemSetAccess",
	cuMemExportToShareableHandle:   "cuMemExportToShareableHandle",
	cuMemImportFromShareableHandle: "cuMemImportFromShareableHandle",

	cuPointerGetAttributes: "cuPointerGetAttributes",

	cuIpcGetMemHandle:    "cuIpcGetMemHandle",
	cuIpcOpenMemHandle:   "cuIpcOpenMemHandle_v2",
	cuIpcCloseMemHandle:  "cuIpcCloseMemHandle",
	cuIpcGetEventHandle:  "cuIpcGetEventHandle",
	cuIpcOpenEventHandle: "cuIpcOpenEventHandle",

	cuStreamWaitValue32:  "cuStreamWaitValue32_v2",
	cuStreamWaitValue64:  "cuStreamWaitValue64_v2",
	cuStreamWriteValue32: "cuStreamWriteValue32_v2",
	cuStreamWriteValue64: "cuStreamWriteValue64_v2",
	cuStreamBatchMemOp:   "cuStreamBatchMemOp_v2",

	cuModuleLoadDataEx:  "cuModuleLoadDataEx",
	cuModuleUnload:      "cuModuleUnload",
	cuModuleGetFunction: "cuModuleGetFunction",
	cuModuleGetGlobal:   "cuModuleGetGlobal_v2",
	cuFuncLoad:          "cuFuncLoad",
	cuFuncGetAttribute:  "cuFuncGetAttribute",
	cuFuncSetAttribute:  "cuFuncSetAttribute",
	cuOccupancyMaxActiveBlocksPerMultiprocessor: "cuOccupancyMaxActiveBlocksPerMultiprocessor",
	cuLaunchKernelEx: "cuLaunchKernelEx",

	cuGraphInstantiateWithFlags: "cuGraphInstantiateWithFlags",
	cuGraphLaunch:               "cuGraphLaunch",
	cuGraphExecDestroy:          "cuGraphExecDestroy",
	cuGraphDestroy:              "cuGraphDestroy",
}

// String returns the name in the driver's documentation.
func (p proc) String() string {
	name := procNames[p]
	if n := len(name); n > 3 && name[n-3:n-1] == "_v" {
		return name[:n-3]
	}
	return name
}
