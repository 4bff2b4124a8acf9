package table

// interp is the interpreter of Programs. An image is a Program as its kernels read
// it: the common part (header, code, operands, expressions, tables, bases), then
// one part for each channel (numbers, lanes, connectors, signals). All parts are
// multiples of 16 bytes.
func interp() Group {
	return Group{
		Name: "interp",
		Doc:  "the interpreter of Programs.",
		Consts: []Const{
			{Name: "InterpVersion", Type: U32, Value: 1},
			{Name: "InterpMaxThreads", Type: U32, Value: 512, Doc: "of a block; more would leave a thread 96 registers instead of 128"},
			{Name: "InterpMaxLanes", Type: U32, Value: 4, Doc: "of a channel"},
			{Name: "InterpPosterFrom", Type: U32, Value: 4, Doc: "warps of a lane from which one does nothing but post"},
			{Name: "InterpFusedRanks", Type: U32, Value: interpFusedRanks, Doc: "most ranks of a fused kernel"},
			{Name: "InterpBanks", Type: U32, Value: 2, Doc: "of scratch"},
			{Name: "InterpWord", Type: U32, Value: 64, Doc: "bytes from one shared word to the next"},
			{Name: "InterpPre", Type: U8, Value: 1, Doc: "flag of an instruction: scale sources of kind In"},
			{Name: "InterpPost", Type: U8, Value: 2, Doc: "flag of an instruction: divide the result"},
			{Name: "InterpUsesScratch", Type: U32, Value: 1, Doc: "flag of a header: the epoch advances"},
			{Name: "InterpUsesWindow", Type: U32, Value: 2, Doc: "flag of a header: peers tell where their buffers are"},
			{Name: "InterpPlaceOffset", Type: U32, Value: 40, Doc: "bits of a place that are the offset in its window; the rest is the window"},
			{Name: "InterpFaultPlace", Type: U32, Value: 1, Doc: "fault: a peer's buffer is in no window"},
			{Name: "InterpFaultImage", Type: U32, Value: 2, Doc: "fault: image and kernel are of different versions"},
		},
		Enums:   []Enum{interpOps, interpKinds},
		Structs: append(append(interpCode(), interpPlaces()...), interpHead(), interpStatus, interpCall, interpArgs(), interpMate, interpFused()),
	}
}

// interpOps and interpKinds have the values of plan.Code and plan.Kind, which a
// test of the encoder holds.
var interpOps = Enum{Name: "InterpOp", Of: U8, Doc: "is an instruction's operation.", Values: []Value{
	{Name: "Move", Value: 1}, {Name: "Signal", Value: 2}, {Name: "Wait", Value: 3}, {Name: "PostL", Value: 4},
	{Name: "WaitL", Value: 5}, {Name: "Loop", Value: 6}, {Name: "Rep", Value: 7}, {Name: "End", Value: 8},
}}

var interpKinds = Enum{Name: "InterpKind", Of: U8, Doc: "is what an operand names.", Values: []Value{
	{Name: "In", Value: 1}, {Name: "Out", Value: 2}, {Name: "FifoSend", Value: 3}, {Name: "FifoRecv", Value: 4},
	{Name: "Scratch", Value: 5}, {Name: "PeerScratch", Value: 6}, {Name: "PeerIn", Value: 7}, {Name: "PeerOut", Value: 8},
}}

// interpCode is what an image has of a Program.
func interpCode() []Struct {
	return []Struct{
		{Name: "InterpInstr", Doc: "is an instruction.", Fields: []Field{
			{Name: "op", Type: interpOps.Type()},
			{Name: "flags", Type: U8},
			{Name: "nsrc", Type: U8},
			{Name: "ndst", Type: U8},
			{Name: "src", Type: U16, Doc: "first source operand"},
			{Name: "dst", Type: U16, Doc: "first destination operand"},
			{Name: "chunk", Type: U16, Doc: "expression: chunk of a move, count of a repetition"},
			{Name: "word", Type: U16, Doc: "signal or semaphore"},
			{Name: "delta", Type: U32},
		}},
		{Name: "InterpOpnd", Doc: "is an operand.", Fields: []Field{
			{Name: "kind", Type: interpKinds.Type()},
			{Name: "unused", Type: U8},
			{Name: "conn", Type: U16, Doc: "connector of the channel"},
			{Name: "peer", Type: U16, Doc: "expression: rank"},
			{Name: "slot", Type: U16, Doc: "expression: scratch slot"},
			{Name: "chunk", Type: U16, Doc: "expression: chunk or block"},
			{Name: "reserved", Type: Arr(U16, 3)},
		}},
		{Name: "InterpExpr", Doc: "is value = T[(P[p] + a + b*j) mod m].", Fields: []Field{
			{Name: "a", Type: I32},
			{Name: "b", Type: I32},
			{Name: "m", Type: I32, Doc: "0: no modulus"},
			{Name: "p", Type: I16, Doc: "number of the channel, -1: none"},
			{Name: "t", Type: U16, Doc: "1 + first entry in the tables, 0: none"},
		}},
	}
}

// interpPlaces is what an image has of a channel, and what a warp works with.
func interpPlaces() []Struct {
	return []Struct{
		{Name: "InterpConn", Doc: "is an end of a FIFO. Addresses are as this rank maps them.", Fields: []Field{
			{Name: "slots", Type: U64, Doc: "first slot"},
			{Name: "watch", Type: U64, Doc: "the word that the other end posts to"},
			{Name: "post", Type: U64, Doc: "the word that this end posts to"},
			{Name: "state", Type: U32, Doc: "index of {steps done, steps of the other end as last seen} in the channel's state"},
			{Name: "reserved", Type: U32},
		}},
		{Name: "InterpSig", Doc: "is an end of a signal.", Fields: []Field{
			{Name: "word", Type: U64, Doc: "the word that one rank adds to and the other waits for"},
			{Name: "call", Type: U64, Doc: "where the one tells the other the places of its buffers; 16 bytes"},
			{Name: "state", Type: U32, Doc: "index of {sum of deltas so far, unused} in the channel's state"},
			{Name: "peer", Type: U32},
			{Name: "number", Type: U32, Doc: "which word between the two ranks"},
			{Name: "reserved", Type: U32},
		}},
		{Name: "InterpChan", Doc: "begins the part of a channel; connectors follow, then signals.", Fields: []Field{
			{Name: "p", Type: Arr(I32, 8)},
			{Name: "lo", Type: Arr(U16, 4), Doc: "first instruction of each lane"},
			{Name: "hi", Type: Arr(U16, 4), Doc: "after the last one"},
			{Name: "lanes", Type: U16},
			{Name: "conns", Type: U16},
			{Name: "sigs", Type: U16},
			{Name: "reserved", Type: Arr(U16, 5)},
		}},
		{Name: "InterpWalk", Doc: "is where a warp stands in its lane. Offsets and lengths are bytes of the channel's part of a unit.", Fields: []Field{
			{Name: "lo", Type: U64, Doc: "where the channel's part begins in every unit"},
			{Name: "n", Type: U64, Doc: "its length"},
			{Name: "start", Type: U64, Doc: "of the current iteration"},
			{Name: "rest", Type: U64, Doc: "bytes of it"},
			{Name: "chunk", Type: U32, Doc: "most bytes of a chunk of it"},
			{Name: "end", Type: U32, Doc: "after the lane's last instruction"},
			{Name: "loop", Type: U32, Doc: "first instruction inside LOOP"},
			{Name: "rep", Type: U32, Doc: "first instruction inside REP"},
			{Name: "reps", Type: U32, Doc: "0: outside REP"},
			{Name: "reserved", Type: Arr(U32, 3)},
		}},
		{Name: "InterpPlace", Doc: "is where an operand of a warp's current move lies.", Fields: []Field{
			{Name: "addr", Type: U64},
			{Name: "flag", Type: U32, Doc: "LL: of the lines"},
			{Name: "lines", Type: U16, Doc: "LL: what kind of lines; 0: the user's memory"},
			{Name: "scale", Type: U16, Doc: "1: scale what comes from here"},
		}},
		{Name: "InterpCount", Doc: "is how far a warp has come with a connector or a signal.", Fields: []Field{
			{Name: "done", Type: U64, Doc: "steps, or sum of deltas"},
			{Name: "seen", Type: U64, Doc: "steps of the other end that are known of"},
		}},
	}
}

var interpStatus = Struct{Name: "InterpStatus", Doc: "lies in host memory that the device maps.", Fields: []Field{
	{Name: "abort", Type: U32, Doc: "written by the host: not 0 ends every wait"},
	{Name: "fault", Type: U32, Doc: "written by the device: why it gave up"},
}}

func interpHead() Struct {
	return Struct{Name: "InterpHead", Doc: "begins an image.", Fields: []Field{
		{Name: "version", Type: U32},
		{Name: "flags", Type: U32},
		{Name: "opnds", Type: U32, Doc: "bytes from the start of the image to the operands; the code follows the header"},
		{Name: "exprs", Type: U32},
		{Name: "tables", Type: U32, Doc: "u32 entries of all tables"},
		{Name: "bases", Type: U32, Doc: "u64 addresses of all ranks' regions"},
		{Name: "rank", Type: U32},
		{Name: "ranks", Type: U32},
		{Name: "per_rank", Type: U32, Doc: "1: operands' chunks are blocks of one rank each"},
		{Name: "slices", Type: U32, Doc: "of a chunk"},
		{Name: "chunk", Type: U32, Doc: "most bytes of a chunk"},
		{Name: "grain", Type: U32, Doc: "bytes"},
		{Name: "grain_shift", Type: U32, Doc: "32: no power of two"},
		{Name: "d", Type: U32, Doc: "chunks of an iteration"},
		{Name: "d_shift", Type: U32, Doc: "32: no power of two"},
		{Name: "esize", Type: U32, Doc: "bytes of an element"},
		{Name: "factor", Type: F32, Doc: "InterpPost multiplies by it; 1: not"},
		{Name: "div", Type: F32, Doc: "InterpPost divides by it; 0: not"},
		{Name: "flag_mask", Type: U32, Doc: "LL: the flag of step s is 1 + (s & mask)"},
		{Name: "slot_mask", Type: U32, Doc: "slots of a FIFO - 1"},
		{Name: "slot_bytes", Type: U32, Doc: "memory of a FIFO slot"},
		{Name: "scratch_bytes", Type: U32, Doc: "memory of a scratch slot"},
		{Name: "scratch", Type: U32, Doc: "bytes from the start of a block to the first bank's slot"},
		{Name: "scratch_flag", Type: U32, Doc: "Simple: bytes from the start of a block to the first bank's word"},
		{Name: "block", Type: U64, Doc: "bytes of a block: what a region has for one channel and peer"},
		{Name: "reserved", Type: U64},
	}}
}

// interpCall is what differs from launch to launch.
var interpCall = Struct{Name: "InterpCall", Doc: "begins the arguments of every kernel: what differs from launch to launch.", Fields: []Field{
	{Name: "in", Type: Ptr("const u8")},
	{Name: "out", Type: Ptr("u8")},
	{Name: "unit", Type: U64, Doc: "bytes of the whole buffer or of one block"},
	{Name: "in_place", Type: U64, Doc: "place of in, for peers"},
	{Name: "out_place", Type: U64},
	{Name: "per", Type: U64, Doc: "grains of a unit that every channel has"},
	{Name: "extra", Type: U32, Doc: "channels that have one more"},
	{Name: "scaled", Type: U32, Doc: "1: InterpPre multiplies by scale"},
	{Name: "scale", Type: F32},
	{Name: "reserved", Type: U32},
}}

func interpArgs() Struct {
	return Struct{Name: "InterpArgs", Doc: "are the arguments of every interpreter kernel. The grid has one block for each channel.", Fields: []Field{
		{Name: "call", Type: interpCall.Type()},
		{Name: "head", Type: interpHead().Type(), Doc: "of the image, again: as arguments its numbers cost no load"},
		{Name: "image", Type: Ptr("const u8")},
		{Name: "state", Type: Ptr("u64"), Doc: "of all channels: epoch, then what connectors and signals count"},
		{Name: "status", Type: Ptr("InterpStatus")},
		{Name: "windows", Type: Ptr("const u64"), Doc: "by window: bytes, then every rank's address"},
		{Name: "n_windows", Type: U32},
		{Name: "common", Type: U32, Doc: "bytes of the image's common part"},
		{Name: "channel", Type: U32, Doc: "bytes of a channel's part"},
		{Name: "state_bytes", Type: U32, Doc: "of a channel"},
		{Name: "counters", Type: U32, Doc: "most connectors and signals of a channel"},
		{Name: "operands", Type: U32, Doc: "most operands of an instruction"},
		{Name: "wins", Type: U32, Doc: "where in shared memory the addresses of peers' buffers are; what is in front needs no word"},
		{Name: "walks", Type: U32, Doc: "the walk of every warp"},
		{Name: "places", Type: U32, Doc: "the places of every warp"},
		{Name: "counts", Type: U32, Doc: "the counts of every warp"},
		{Name: "sems", Type: U32, Doc: "the semaphores"},
		{Name: "dead", Type: U32, Doc: "the word that says that a thread has given up; the last"},
	}}
}

var interpMate = Struct{Name: "InterpMate", Doc: "is where data goes to a rank and comes from it: the first channel's slot in the first bank.", Fields: []Field{
	{Name: "to", Type: U64},
	{Name: "from", Type: U64},
}}

func interpFused() Struct {
	return Struct{Name: "InterpFused", Doc: "are the arguments of the fused kernels, which do what a one-shot Program says and read no image.", Fields: []Field{
		{Name: "call", Type: interpCall.Type()},
		{Name: "state", Type: Ptr("u64"), Doc: "of all channels, as in InterpArgs"},
		{Name: "status", Type: Ptr("InterpStatus")},
		{Name: "block", Type: U64, Doc: "bytes from one channel's slot to the next one's"},
		{Name: "state_bytes", Type: U32, Doc: "of a channel"},
		{Name: "rank", Type: U32},
		{Name: "ranks", Type: U32},
		{Name: "grain", Type: U32, Doc: "bytes"},
		{Name: "esize", Type: U32, Doc: "bytes of an element"},
		{Name: "flag_mask", Type: U32, Doc: "the flag of epoch e is 1 + (e & mask)"},
		{Name: "slot_bytes", Type: U32, Doc: "memory of a slot, and from one bank to the next"},
		{Name: "factor", Type: F32, Doc: "the result is multiplied by it; 1: not"},
		{Name: "div", Type: F32, Doc: "the result is divided by it; 0: not"},
		{Name: "pre", Type: U32, Doc: "1: a scaled call scales the input"},
		{Name: "mates", Type: Arr(interpMate.Type(), interpFusedRanks), Doc: "by rank"},
	}}
}

// interpFusedRanks is the most ranks of a fused kernel.
const interpFusedRanks = 8
