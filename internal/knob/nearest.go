package knob

// nearest returns the known name with the smallest edit distance to name, and
// whether it is near enough to be what was meant: at most a third of the letters
// after the prefix differ.
func nearest(name string, known []string) (string, bool) {
	best, bestDist := "", len(name)
	for _, k := range known {
		if d := distance(name, k); d < bestDist {
			best, bestDist = k, d
		}
	}
	return best, bestDist <= max(1, (len(name)-len(prefix))/3)
}

// distance is the number of letters inserted, removed, replaced or swapped with
// their neighbour to get from a to b (optimal string alignment).
func distance(a, b string) int {
	prev2 := make([]int, len(b)+1)
	prev := make([]int, len(b)+1)
	row := make([]int, len(b)+1)
	for j := range prev {
		prev[j] = j
	}
	for i := 1; i <= len(a); i++ {
		row[0] = i
		for j := 1; j <= len(b); j++ {
			cost := 1
			if a[i-1] == b[j-1] {
				cost = 0
			}
			row[j] = min(prev[j]+1, row[j-1]+1, prev[j-1]+cost)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				row[j] = min(row[j], prev2[j-2]+1)
			}
		}
		prev2, prev, row = prev, row, prev2
	}
	return prev[len(b)]
}
