// Package trace is what a job leaves behind about its collectives: the entries
// of the flight recorder, the dump file of one rank, and the verdict that reads
// the dumps of all ranks and says in one sentence what went wrong.
//
// A dump is JSON, one file for each group and rank, written whole or not at
// all. The ring that the entries come from is in package process_group.
package trace
