package processgroup_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl"
	"github.com/goccl/goccl/device"
	processgroup "github.com/goccl/goccl/process_group"
	"github.com/goccl/goccl/process_group/backend/fake"
)

func TestC81MonitoredBarrierListsAllMissing(t *testing.T) {
	control := new(fake.Control)
	g := processgroup.New(processgroup.Config{Name: "world", Size: 4, Backend: fake.Immediate(), Control: control})
	defer g.Close()
	require.NoError(t, g.MonitoredBarrier(t.Context()))
	control.SetBarrier([]int{1, 3}, context.DeadlineExceeded)
	err := g.MonitoredBarrier(t.Context())
	require.EqualError(t, err, `goccl: rank 0: monitored barrier on group "world": timed out; missing ranks 1, 3; these ranks have not called MonitoredBarrier`)
	require.ErrorIs(t, err, goccl.ErrTimeout)
	control.SetBarrier(nil, errors.New("the root is gone"))
	require.ErrorContains(t, g.MonitoredBarrier(t.Context()), "the root is gone")
	require.NoError(t, g.Err(), "it does not fail the group")

	alone := processgroup.New(processgroup.Config{Name: "g", Size: 2, Backend: fake.Immediate()})
	defer alone.Close()
	require.ErrorIs(t, alone.MonitoredBarrier(t.Context()), goccl.ErrUnsupported)
}

func ExampleGroup_AllReduce() {
	ctx := context.Background()
	groups := fake.Groups(2, processgroup.Config{})
	works := make([]processgroup.Work, len(groups))
	grads := [][]float32{{1, 2}, {10, 20}}
	for rank, g := range groups { // each of these would be a process
		works[rank] = g.AllReduce(device.SliceOf(grads[rank]), goccl.Sum)
	}
	if err := processgroup.WaitAll(ctx, works...); err != nil {
		fmt.Println(err)
	}
	fmt.Println(grads)
	for _, g := range groups {
		g.Close()
	}
	// Output: [[11 22] [11 22]]
}
