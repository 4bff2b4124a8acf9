package wire

// Sizes in bytes of nonces, signatures and job identities.
const (
	NonceSize = 16
	MACSize   = 32
	JobSize   = 8
)

// Banner is the first frame of every connection. It gives the rank a nonce to
// sign, so that the secret of the unique id never travels.
type Banner struct {
	Nonce [NonceSize]byte
}

// Hello asks to join. MAC is the last field of the body and signs the banner's
// nonce and all bytes before itself.
type Hello struct {
	Job     [JobSize]byte // hash of the job id
	Rank    int
	Size    int    // world size, as this rank believes
	PID     int    // process id on Host
	Host    string // host name
	Nonce   [NonceSize]byte
	Failure string // not empty: this rank cannot join, and why
	Info    []byte // handed to every rank in the Roster, not looked at here
	MAC     [MACSize]byte
}

// Accept answers a good Hello: the root knows the secret too.
type Accept struct {
	MAC             [MACSize]byte // signs both nonces
	HeartbeatMillis uint32        // send something at least this often; 0: no heartbeats
}

// Refuse ends the joining of one rank or, when the world cannot be completed, of
// all. Rank is the guilty one or -1.
type Refuse struct {
	Code    Code
	Rank    int
	Missing []int // ranks that have not joined
	Text    string
}

// Member is one line of the Roster; its place in the list is the rank.
type Member struct {
	PID  int
	Host string
	Addr string // as the root sees it
	Info []byte
}

// Roster says that all ranks have joined.
type Roster struct {
	Members []Member
}

// Ping carries nothing. Any frame proves life; an idle side sends this one.
type Ping struct{}

// Bye announces a normal departure. The root answers by closing the connection.
type Bye struct{}

// Kind returns KindBanner.
func (Banner) Kind() Kind { return KindBanner }

// Kind returns KindHello.
func (Hello) Kind() Kind { return KindHello }

// Kind returns KindAccept.
func (Accept) Kind() Kind { return KindAccept }

// Kind returns KindRefuse.
func (Refuse) Kind() Kind { return KindRefuse }

// Kind returns KindRoster.
func (Roster) Kind() Kind { return KindRoster }

// Kind returns KindPing.
func (Ping) Kind() Kind { return KindPing }

// Kind returns KindBye.
func (Bye) Kind() Kind { return KindBye }

func (m Banner) appendBody(b []byte) []byte { return append(b, m.Nonce[:]...) }
func (Ping) appendBody(b []byte) []byte     { return b }
func (Bye) appendBody(b []byte) []byte      { return b }

func (m Hello) appendBody(b []byte) []byte {
	b = append(b, m.Job[:]...)
	b = appendRank(b, m.Rank)
	b = appendRank(b, m.Size)
	b = appendU64(b, uint64(m.PID))
	b = appendText(b, m.Host, MaxHost)
	b = append(b, m.Nonce[:]...)
	b = appendText(b, m.Failure, MaxText)
	b = appendBytes(b, m.Info)
	return append(b, m.MAC[:]...)
}

func decodeHello(c *cursor) Message {
	var m Hello
	copy(m.Job[:], c.take(JobSize))
	m.Rank = c.rank()
	m.Size = c.rank()
	m.PID = int(c.u64())
	m.Host = c.text(MaxHost)
	m.Nonce = c.nonce()
	m.Failure = c.text(MaxText)
	m.Info = c.bytes(MaxInfo)
	m.MAC = c.mac()
	return m
}

// Signed returns the bytes of a Hello's body that its MAC covers. A body too short
// to hold a MAC yields nothing.
func Signed(body []byte) []byte {
	return body[:max(0, len(body)-MACSize)]
}

// SignedBody returns the bytes that the MAC of m has to cover.
func (m Hello) SignedBody() []byte { return Signed(m.appendBody(nil)) }

func (m Accept) appendBody(b []byte) []byte {
	b = append(b, m.MAC[:]...)
	return appendU32(b, m.HeartbeatMillis)
}

func (m Refuse) appendBody(b []byte) []byte {
	b = append(b, byte(m.Code))
	b = appendRank(b, m.Rank)
	b = appendRanks(b, m.Missing)
	return appendText(b, m.Text, MaxText)
}

func (m Roster) appendBody(b []byte) []byte {
	b = appendU32(b, uint32(len(m.Members)))
	for _, p := range m.Members {
		b = appendU64(b, uint64(p.PID))
		b = appendText(b, p.Host, MaxHost)
		b = appendText(b, p.Addr, MaxHost)
		b = appendBytes(b, p.Info)
	}
	return b
}

func decodeRoster(c *cursor) Message {
	n := c.count(8 + 3*4)
	m := Roster{Members: make([]Member, n)}
	for i := range m.Members {
		m.Members[i] = Member{PID: int(c.u64()), Host: c.text(MaxHost), Addr: c.text(MaxHost), Info: c.bytes(MaxInfo)}
	}
	return m
}
