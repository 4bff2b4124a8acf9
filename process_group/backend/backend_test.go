package backend_test

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl"
	"github.com/goccl/goccl/process_group/backend"
)

func TestRegistry(t *testing.T) {
	_, err := backend.Find("other")
	require.ErrorIs(t, err, goccl.ErrUnsupported)
	require.ErrorContains(t, err, `no backend called "other", it has ccl; import _ "github.com/goccl/goccl/process_group/backend/other"`)

	why := errors.New("made")
	maker := func(context.Context, backend.Spec) (backend.Engine, error) { return nil, why }
	backend.Register("other", maker)
	found, err := backend.Find("other")
	require.NoError(t, err)
	_, err = found(t.Context(), backend.Spec{})
	require.Equal(t, why, err)
	require.Panics(t, func() { backend.Register("other", maker) })
	_, err = backend.Find("third")
	require.ErrorContains(t, err, "it has ccl other;")
}
