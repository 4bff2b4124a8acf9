package bucket

import (
	"fmt"
	"strings"
)

// maxNames is how many parameters a message names before it counts the rest.
const maxNames = 10

// nameList writes the names of the given parameters for a message: up to ten,
// then "and N more".
func nameList(names []string, which []int) string {
	var b strings.Builder
	for k, i := range which {
		if k == maxNames {
			fmt.Fprintf(&b, " and %d more", len(which)-maxNames)
			break
		}
		if k > 0 {
			b.WriteString(", ")
		}
		b.WriteString(names[i])
	}
	return b.String()
}
