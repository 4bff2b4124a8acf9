package bootstrap

import (
	"crypto/hmac"
	"crypto/sha256"

	"github.com/goccl/goccl/comm/wire"
)

// sign computes the keyed hash over the parts. The label keeps a rank's signature
// from being played back as a root's; the nonces keep old ones from being reused.
func sign(secret []byte, label string, parts ...[]byte) (m [wire.MACSize]byte) {
	h := hmac.New(sha256.New, secret)
	h.Write([]byte(label))
	for _, p := range parts {
		h.Write(p)
	}
	h.Sum(m[:0])
	return m
}

func signHello(secret []byte, banner wire.Banner, signed []byte) [wire.MACSize]byte {
	return sign(secret, "goccl hello", banner.Nonce[:], signed)
}

func signAccept(secret []byte, banner wire.Banner, hello wire.Hello) [wire.MACSize]byte {
	return sign(secret, "goccl accept", banner.Nonce[:], hello.Nonce[:])
}

// sameMAC compares in constant time, so that a guess cannot be improved byte by
// byte.
func sameMAC(a, b [wire.MACSize]byte) bool { return hmac.Equal(a[:], b[:]) }
