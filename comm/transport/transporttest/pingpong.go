package transporttest

import (
	"slices"
	"testing"
	"time"

	"github.com/goccl/goccl/comm/transport"
	"github.com/goccl/goccl/internal/spin"
)

// Inline is the FIFO of small messages: the flag shares a line with the payload.
var Inline = transport.FIFOSpec{Slots: 8, SlotBytes: 64, Inline: true}

// PingPongLocal measures a round trip of 8 bytes between two goroutines that wait
// as the policy says.
func PingPongLocal(b *testing.B, w *World, policy spin.Policy) {
	there, here := w.Connect(b, NewConn(0, 0, 1, Inline)), w.Connect(b, NewConn(0, 1, 0, Inline))
	n := b.N
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for range n {
			turn(there.Recv, policy)
			post(here.Send, policy)
		}
	}()
	pingPong(b, there.Send, here.Recv, policy)
	<-ended
}

// pingPong reports, beside the mean, the least and the median batch: on a busy
// machine the mean is about the other processes.
func pingPong(b *testing.B, send *transport.Send, recv *transport.Recv, policy spin.Policy) {
	const batch = 500
	var means []float64
	b.ResetTimer()
	for done := 0; done < b.N; {
		begin := time.Now()
		n := min(batch, b.N-done)
		for range n {
			post(send, policy)
			turn(recv, policy)
		}
		done += n
		means = append(means, float64(time.Since(begin).Nanoseconds())/float64(n))
	}
	b.StopTimer()
	slices.Sort(means)
	b.ReportMetric(means[0], "min-ns/op")
	b.ReportMetric(means[len(means)/2], "p50-ns/op")
}

// post sends 8 bytes.
func post(send *transport.Send, policy spin.Policy) {
	policy.Word = send.CreditBell()
	w := spin.Waiter{Policy: policy}
	for !send.Ready() {
		w.Turn()
	}
	w.Reset()
	send.Post(8, 3)
}

// turn waits for a message and releases it.
func turn(recv *transport.Recv, policy spin.Policy) {
	policy.Word = recv.Bell()
	w := spin.Waiter{Policy: policy}
	for !recv.Ready() {
		w.Turn()
	}
	w.Reset()
	recv.Release()
}
