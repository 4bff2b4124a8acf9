package bootstrap

import (
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"time"

	"github.com/goccl/goccl/comm/wire"
)

// handshakeTime bounds what an unknown client may take to identify itself.
const handshakeTime = 5 * time.Second

// stranger is a reason not to talk to a client, with the refusal it gets, if any.
type stranger struct {
	refuse *wire.Refuse
	why    string
}

func (s *stranger) Error() string { return s.why }

func strange(code wire.Code, format string, args ...any) error {
	why := fmt.Sprintf(format, args...)
	return &stranger{refuse: &wire.Refuse{Code: code, Rank: -1, Text: why}, why: why}
}

// greet is the root's side of the handshake: it sends the banner, reads the hello
// and checks version, job and signature. What rank and size mean is the hub's
// business.
func greet(l *link, id UniqueID, deadline time.Time) (wire.Hello, wire.Banner, error) {
	var banner wire.Banner
	if _, err := rand.Read(banner.Nonce[:]); err != nil {
		return wire.Hello{}, banner, err
	}
	if err := l.write(banner, deadline); err != nil {
		return wire.Hello{}, banner, err
	}
	l.setHard(deadline)
	kind, body, err := l.readBody(wire.MaxHello)
	if err != nil {
		var ve *wire.VersionError
		if errors.As(err, &ve) {
			return wire.Hello{}, banner, strange(wire.CodeVersion, "%v (client at %s)", ve, l.address())
		}
		return wire.Hello{}, banner, err
	}
	m, err := wire.Decode(kind, body)
	if err != nil {
		return wire.Hello{}, banner, strange(wire.CodeMalformed, "hello from %s: %v", l.address(), err)
	}
	hello, ok := m.(wire.Hello)
	if !ok {
		return wire.Hello{}, banner, strange(wire.CodeMalformed, "%s sent %v where a hello is due", l.address(), kind)
	}
	if ours := id.job(); hello.Job != ours {
		return hello, banner, strange(wire.CodeJob, "other job: the root serves job %s, rank %d (%s) belongs to job %s: two jobs share this address; give each its own port",
			hex.EncodeToString(ours[:4]), hello.Rank, who(hello.Host, hello.PID), hex.EncodeToString(hello.Job[:4]))
	}
	if !sameMAC(hello.MAC, signHello(id.secret(), banner, wire.Signed(body))) {
		return hello, banner, strange(wire.CodeSecret, "wrong secret: rank %d (%s) has a unique id of another run: hand all ranks the id that the root printed this time", hello.Rank, who(hello.Host, hello.PID))
	}
	l.setHard(time.Time{})
	return hello, banner, nil
}
