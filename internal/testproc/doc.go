// Package testproc runs the ranks of a test as processes: the test binary starts
// itself once per rank. The parent learns that a rank is ready from a pipe, and
// can kill it, stop it and see it stopped. Linux only.
//
// A package that uses it calls Enter first in its TestMain:
//
//	func TestMain(m *testing.M) {
//		testproc.Enter(map[string]testproc.Rank{"echo": echo})
//		os.Exit(m.Run())
//	}
//
// and a test starts ranks by that name:
//
//	g := testproc.Start(t, "echo", 4, testproc.Options{})
//	g.WaitReady(t)
//	g.Procs[2].Kill(t)
package testproc
