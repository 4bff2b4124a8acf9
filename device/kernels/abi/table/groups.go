package table

// Groups returns all groups, in an order in which each is after those it uses.
func Groups() []Group {
	return []Group{elementwise(), mlp(), interp()}
}
