package knob

import "github.com/goccl/goccl"

// table holds every knob, sorted by name.
var table = []Knob{
	{Name: "GOCCL_ALGO", NCCLAlias: "NCCL_ALGO", Default: "auto", Values: "auto ring tree oneshot twoshot direct",
		Doc: "Algorithm of every collective that has it.", Owner: "process_group/backend/ccl", Uniform: true,
		set: func(s *Settings, v string) (err error) {
			s.Algorithm, err = goccl.ParseAlgorithm(v)
			return err
		}},
	{Name: "GOCCL_BACKEND", Default: "ccl", Values: "ccl, or a backend that the program imports, such as nccl",
		Doc: "What moves the data of all groups.", Owner: "dist",
		set: func(s *Settings, v string) error { s.Backend = v; return nil }},
	{Name: "GOCCL_CHUNK_BYTES", Default: "0", Values: "bytes, for example 65536 or 64K; 0 chooses by size",
		Doc: "Bytes that a step moves at a time.", Owner: "process_group/backend/ccl", Uniform: true,
		set: func(s *Settings, v string) (err error) { s.ChunkBytes, err = parseBytes(v); return err }},
	{Name: "GOCCL_DEBUG", NCCLAlias: "NCCL_DEBUG", Default: "WARN", Values: "OFF WARN INFO TRACE",
		Doc: "Least level of log lines.", Owner: "dist",
		set: func(s *Settings, v string) (err error) { s.Debug, err = parseLevel(v); return err }},
	{Name: "GOCCL_DETERMINISTIC", Default: "0", Values: "0 1",
		Doc:   "Choose algorithm, protocol and channels from the size alone, so that bits do not depend on measured tables.",
		Owner: "process_group/backend/ccl", Uniform: true,
		set: func(s *Settings, v string) (err error) { s.Deterministic, err = parseBool(v); return err }},
	{Name: "GOCCL_DUMP_DIR", Default: "the working folder", Values: "a folder",
		Doc: "Where the flight recorder writes its dumps.", Owner: "process_group",
		set: func(s *Settings, v string) error { s.DumpDir = v; return nil }},
	{Name: "GOCCL_HOSTID", NCCLAlias: "NCCL_HOSTID", Default: "found from the machine", Values: "any text",
		Doc: "Identity of this host: ranks with equal ones share memory.", Owner: "comm",
		set: func(s *Settings, v string) error { s.HostID = v; return nil }},
	{Name: "GOCCL_JOB_ID", Default: "none", Values: "any text",
		Doc: "Name of the job: ranks of different jobs that meet refuse each other.", Owner: "dist",
		set: func(s *Settings, v string) error { s.JobID = v; return nil }},
	{Name: "GOCCL_LISTEN_FD", Default: "-1", Values: "a file descriptor number, or -1 for none",
		Doc: "Listening socket that the launcher opened and handed down.", Owner: "dist",
		set: func(s *Settings, v string) (err error) { s.ListenFD, err = parseInt(v, -1, 1<<20); return err }},
	{Name: "GOCCL_MAX_CHANNELS", NCCLAlias: "NCCL_MAX_NCHANNELS", Default: "0", Values: "0 to 64; 0 is no limit",
		Doc: "Most channels that one collective uses.", Owner: "process_group/backend/ccl", Uniform: true,
		set: func(s *Settings, v string) (err error) { s.MaxChannels, err = parseInt(v, 0, 64); return err }},
	{Name: "GOCCL_NCCL_LIB", Default: "libnccl.so.2 where the dynamic linker finds it", Values: "the path of a libnccl.so.2",
		Doc: "NCCL's library, for backend nccl.", Owner: "process_group/backend/nccl",
		set: func(s *Settings, v string) error { s.NCCLLib = v; return nil }},
	{Name: "GOCCL_PORT_RANGE", Default: "the system chooses", Values: "FIRST-LAST, each from 1 to 65535",
		Doc: "Ports on which this process listens.", Owner: "dist",
		set: func(s *Settings, v string) (err error) { s.PortRange, err = parsePorts(v); return err }},
	{Name: "GOCCL_PROTO", NCCLAlias: "NCCL_PROTO", Default: "auto", Values: "auto ll simple",
		Doc: "Protocol of every collective that has it.", Owner: "process_group/backend/ccl", Uniform: true,
		set: func(s *Settings, v string) (err error) { s.Protocol, err = goccl.ParseProtocol(v); return err }},
	{Name: "GOCCL_SHARE_GPU", Default: "0", Values: "0 1",
		Doc: "Let ranks of one process use one GPU, for tests.", Owner: "process_group/backend/ccl",
		set: func(s *Settings, v string) (err error) { s.ShareGPU, err = parseBool(v); return err }},
	{Name: "GOCCL_SHM_DISABLE", NCCLAlias: "NCCL_SHM_DISABLE", Default: "0", Values: "0 1",
		Doc: "Do not use shared memory between processes of one host.", Owner: "process_group/backend/ccl",
		set: func(s *Settings, v string) (err error) { s.ShmDisable, err = parseBool(v); return err }},
	{Name: "GOCCL_SOCKET_IFNAME", NCCLAlias: "NCCL_SOCKET_IFNAME", Default: "all", Values: "eth,ib (prefixes), =eth0 (exact), ^docker (all but)",
		Doc: "Network interfaces for bootstrap and sockets.", Owner: "dist",
		set: func(s *Settings, v string) (err error) { s.SocketIfname, err = parseInterfaces(v); return err }},
	{Name: "GOCCL_TIMEOUT", Default: "the library's own", Values: "a duration such as 90s or 10m, or a number of seconds",
		Doc: "How long a group waits for a rank before it aborts and names the missing.", Owner: "dist",
		set: func(s *Settings, v string) (err error) { s.Timeout, err = parseDuration(v); return err }},
}

// confFile names a configuration file; it is not a knob, since it cannot stand
// in one.
const confFile = "GOCCL_CONF_FILE"

// elsewhere lists names that begin with GOCCL_ and are read by tests, not by
// the library, so that they are not called unknown. Names that begin with
// testPrefix belong to tests as well.
var elsewhere = []string{confFile, "GOCCL_NIGHTLY", "GOCCL_REQUIRE"}

const testPrefix = "GOCCL_TEST_"
