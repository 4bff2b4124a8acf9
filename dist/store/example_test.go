package store_test

import (
	"context"
	"fmt"
	"time"

	"github.com/goccl/goccl/dist/store"
)

// Rank 0 serves the store and the others connect. A server that ends waits for
// their goodbye, so that no one loses the store in its last call.
func Example() {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()

	// On rank 0:
	srv, err := store.ListenTCP(ctx, "127.0.0.1:0", store.ServerConfig{Job: "job 7", Clients: 1})
	if err != nil {
		fmt.Println(err)
		return
	}

	// On rank 1:
	go func() {
		s, err := store.DialTCP(ctx, srv.Addr().String(), store.DialConfig{Job: "job 7", Name: "rank 1"})
		if err != nil {
			fmt.Println(err)
			return
		}
		defer s.Close()
		if err := store.Prefix(s, "addr/").Set(ctx, "1", []byte("10.0.0.2:4321")); err != nil {
			fmt.Println(err)
		}
	}()

	// On rank 0 again: Get waits for the key.
	addr, err := srv.Store().Get(ctx, "addr/1")
	fmt.Printf("rank 1 listens on %s, %v\n", addr, err)
	fmt.Println(srv.Shutdown(ctx))
	// Output:
	// rank 1 listens on 10.0.0.2:4321, <nil>
	// <nil>
}
