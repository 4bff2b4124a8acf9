package wire

// Put is one rank's part of collective number Seq, counted from 1 on each rank.
type Put struct {
	Seq  uint64
	Op   Op
	Data []byte
}

// All completes collective Seq. Parts has one entry per rank, and none at all
// for a barrier.
type All struct {
	Seq   uint64
	Parts [][]byte
}

// End says that collective Seq cannot complete. Rank is the guilty one or -1;
// Missing are all ranks that had not arrived.
type End struct {
	Seq     uint64
	Code    Code
	Rank    int
	Missing []int
	Text    string
}

// Expire tells the root that the sender's deadline for collective Seq has passed;
// Seq 0 is the joining itself.
type Expire struct {
	Seq uint64
}

// Relay is a message between two ranks. Rank is the receiver on the way to the
// root and the sender on the way from it.
type Relay struct {
	Rank int
	Tag  uint64
	Data []byte
}

// Query asks a rank for its status. From the root, Rank is who asks; to the root
// it is not used.
type Query struct {
	Rank  int
	Token uint64 // chosen by who asks, comes back in Status
}

// Status answers a Query. Rank is who asked on the way to the root, and who
// answers on the way from it.
type Status struct {
	Rank  int
	Token uint64
	Data  []byte
}

// Fail says that the sender gives up.
type Fail struct {
	Text string
}

// Event tells what happened to a rank. All ranks get the events in one order.
type Event struct {
	What EventKind
	Rank int
	Text string
}

// Kind returns KindPut.
func (Put) Kind() Kind { return KindPut }

// Kind returns KindAll.
func (All) Kind() Kind { return KindAll }

// Kind returns KindEnd.
func (End) Kind() Kind { return KindEnd }

// Kind returns KindExpire.
func (Expire) Kind() Kind { return KindExpire }

// Kind returns KindRelay.
func (Relay) Kind() Kind { return KindRelay }

// Kind returns KindQuery.
func (Query) Kind() Kind { return KindQuery }

// Kind returns KindStatus.
func (Status) Kind() Kind { return KindStatus }

// Kind returns KindFail.
func (Fail) Kind() Kind { return KindFail }

// Kind returns KindEvent.
func (Event) Kind() Kind { return KindEvent }

func (m Put) appendBody(b []byte) []byte {
	b = appendU64(b, m.Seq)
	b = append(b, byte(m.Op))
	return appendBytes(b, m.Data)
}

// AllSize returns the body length of an All whose n parts have total bytes, to be
// compared with MaxDown before one is made.
func AllSize(n, total int) int { return 8 + 4 + 4*n + total }

func (m All) appendBody(b []byte) []byte {
	b = appendU64(b, m.Seq)
	b = appendU32(b, uint32(len(m.Parts)))
	for _, p := range m.Parts {
		b = appendBytes(b, p)
	}
	return b
}

func decodeAll(c *cursor) Message {
	m := All{Seq: c.u64()}
	n := c.count(4)
	if n == 0 {
		return m
	}
	m.Parts = make([][]byte, n)
	for i := range m.Parts {
		m.Parts[i] = c.bytes(MaxData)
	}
	return m
}

func (m End) appendBody(b []byte) []byte {
	b = appendU64(b, m.Seq)
	b = append(b, byte(m.Code))
	b = appendRank(b, m.Rank)
	b = appendRanks(b, m.Missing)
	return appendText(b, m.Text, MaxText)
}

func (m Expire) appendBody(b []byte) []byte { return appendU64(b, m.Seq) }

func (m Relay) appendBody(b []byte) []byte {
	b = appendRank(b, m.Rank)
	b = appendU64(b, m.Tag)
	return appendBytes(b, m.Data)
}

func (m Query) appendBody(b []byte) []byte {
	b = appendRank(b, m.Rank)
	return appendU64(b, m.Token)
}

func (m Status) appendBody(b []byte) []byte {
	b = appendRank(b, m.Rank)
	b = appendU64(b, m.Token)
	return appendBytes(b, m.Data)
}

func (m Fail) appendBody(b []byte) []byte { return appendText(b, m.Text, MaxText) }

func (m Event) appendBody(b []byte) []byte {
	b = append(b, byte(m.What))
	b = appendRank(b, m.Rank)
	return appendText(b, m.Text, MaxText)
}
