package bucket

import (
	"go/parser"
	"go/token"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"
)

// The logic of a step is pure: nothing in it can wait, look at a clock or touch
// memory. Package device is there for the type of an identifier.
func TestLogicIsPure(t *testing.T) {
	allowed := map[string]bool{"cmp": true, "fmt": true, "slices": true, "strings": true,
		"github.com/goccl/goccl": true, "github.com/goccl/goccl/device": true}
	for _, file := range []string{"assign.go", "place.go", "machine.go", "action.go", "names.go", "layout.go"} {
		f, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.ImportsOnly)
		require.NoError(t, err)
		for _, i := range f.Imports {
			path, err := strconv.Unquote(i.Path.Value)
			require.NoError(t, err)
			require.True(t, allowed[path], "%s imports %s", file, path)
		}
	}
}
