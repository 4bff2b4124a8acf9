package bootstrap

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/goccl/goccl/comm/wire"
)

// bannerTime bounds the wait for the first frame of a root. A root sends it at
// once; anything that listens and says nothing is something else.
const bannerTime = 5 * time.Second

// refusedError is a Refuse of the root.
type refusedError struct{ wire.Refuse }

func (e *refusedError) Error() string { return e.Text }

// knock is the rank's side of the handshake on a new connection: read the banner,
// send the signed hello, check the root's own signature. On success the root counts
// this rank as joined.
func knock(ctx context.Context, l *link, secret []byte, hello wire.Hello) (wire.Accept, error) {
	fail := func(step string, then verdictOf, err error) (wire.Accept, error) {
		return wire.Accept{}, &attemptError{step: step, then: then, err: err}
	}
	l.setHard(time.Now().Add(bannerTime))
	cut := make(chan struct{})
	release := context.AfterFunc(ctx, func() { l.setHard(time.Now()); close(cut) })
	defer release()
	first, err := l.read(wire.MaxHello)
	if err != nil {
		return fail("read banner", bannerVerdict(err), describeBanner(l, err))
	}
	banner, ok := first.(wire.Banner)
	if !ok {
		return fail("read banner", another, fmt.Errorf("a root begins with a banner, this began with %v", first.Kind()))
	}
	if _, err := rand.Read(hello.Nonce[:]); err != nil {
		return fail("send hello", never, err)
	}
	hello.MAC = signHello(secret, banner, hello.SignedBody())
	deadline := time.Now().Add(bannerTime)
	if err := l.write(hello, deadline); err != nil {
		return fail("send hello", again, err)
	}
	l.setHard(time.Time{})
	if ctx.Err() != nil {
		l.setHard(time.Now())
	}
	answer, err := l.read(wire.MaxUp)
	if err != nil {
		return fail("wait for the root's answer", again, readable(l, err))
	}
	switch answer := answer.(type) {
	case wire.Accept:
		if !sameMAC(answer.MAC, signAccept(secret, banner, hello)) {
			return fail("check the root", another, errors.New("it does not know the secret of the unique id: another root listens there"))
		}
		if !release() { // joined all the same: the wait for the others handles ctx
			<-cut
			l.setHard(time.Time{})
		}
		return answer, nil
	case wire.Refuse:
		then := never
		if answer.Code == wire.CodeJob || answer.Code == wire.CodeSecret || answer.Code == wire.CodeVersion {
			then = another // a foreign root behind an address that several hosts have
		}
		return fail("join", then, &refusedError{answer})
	}
	return fail("wait for the root's answer", another, fmt.Errorf("it sent %v", answer.Kind()))
}

// bannerVerdict tells a root that is overloaded or restarting, which ends the
// connection early, from something that is no root.
func bannerVerdict(err error) verdictOf {
	var ve *wire.VersionError
	if errors.Is(err, wire.ErrMagic) || errors.Is(err, wire.ErrMalformed) || errors.As(err, &ve) {
		return another
	}
	return again
}

func describeBanner(l *link, err error) error {
	if errors.Is(err, wire.ErrMagic) {
		return fmt.Errorf("something else listens there, no goccl root: %w", err)
	}
	return readable(l, err)
}

// readable puts a person's words before a read error and keeps the error.
func readable(l *link, err error) error {
	switch {
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return fmt.Errorf("%s (%w)", l.why(err), err)
	case errors.Is(err, os.ErrDeadlineExceeded):
		return fmt.Errorf("no answer in time (%w)", err)
	}
	return err
}
