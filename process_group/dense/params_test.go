package dense_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	"gorgonia.org/tensor"

	"github.com/goccl/goccl"
	"github.com/goccl/goccl/bucket"
	processgroup "github.com/goccl/goccl/process_group"
	"github.com/goccl/goccl/process_group/backend/fake"
	"github.com/goccl/goccl/process_group/dense"
)

func TestParams(t *testing.T) {
	weight, bias := on(count(6, 1), 2, 3), on(count(3, 1), 3)
	ps, err := dense.Params([]string{"weight", "bias"}, []*tensor.Dense{weight, bias})
	require.NoError(t, err)
	require.Equal(t, "bias", ps[1].Name)
	require.Equal(t, 3, ps[1].Grad.Count)
	_, err = dense.Params([]string{"weight"}, []*tensor.Dense{weight, bias})
	require.ErrorIs(t, err, goccl.ErrInvalid)
	_, err = dense.Params([]string{"odd"}, []*tensor.Dense{transposed(t, on(count(6, 1), 2, 3))})
	require.ErrorIs(t, err, dense.ErrStrided)
	require.ErrorContains(t, err, `gradient "odd"`)

	g := processgroup.New(processgroup.Config{Name: "g", Size: 1, Backend: fake.Connect(1).Backends()[0]})
	defer func() { require.NoError(t, g.Close()) }()
	r, err := bucket.New(t.Context(), g, ps, bucket.Config{})
	require.NoError(t, err)
	for i := range ps {
		require.NoError(t, r.Ready(i))
	}
	require.NoError(t, r.Finish(t.Context()))
	require.Equal(t, count(6, 1), weight.Data())
	view, err := dense.Tensor(r.View(0), 2, 3)
	require.NoError(t, err)
	require.Equal(t, []int{2, 3}, []int(view.Shape()))
	require.NoError(t, r.Close())
}
