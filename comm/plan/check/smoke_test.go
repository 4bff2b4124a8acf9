package check

import ("testing"; "time"
"github.com/goccl/goccl")

func TestSmoke(t *testing.T) {
	for _, b := range bodies() {
		for _, m := range b.mapping() { for _, w := range b.windows(m) {
			for _, n := range []int{1,2,3,4,5,8} {
			for _, ch := range []int{1,2} {
			g := shape(t, n, 2, m)
			k := key(b.coll, b.algo, goccl.LL, ch, 0, 2)
			k.Window = w
			t0 := time.Now()
			rep, err := Survey(build(t, k, g), Options{})
			if err != nil { t.Errorf("%v n=%d mapped %v: %v", k, n, m, err) }
			t.Logf("%v n=%d %+v %v", k, n, rep, time.Since(t0))
		}}}}
	}
}
