package main

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"
)

// TestGenerated regenerates everything and compares it with what is checked in:
// neither a changed generator nor an edited .s file can go unnoticed.
func TestGenerated(t *testing.T) {
	dir := t.TempDir()
	if err := generate(dir); err != nil {
		t.Fatal(err)
	}
	fresh := names(t, dir)
	if len(fresh) == 0 {
		t.Fatal("nothing was generated")
	}
	kept := map[string]bool{}
	for _, pattern := range []string{"reduce_*_amd64.*", "copy_*_amd64.*", "table_*_amd64.go"} {
		found, err := filepath.Glob(filepath.Join("..", pattern))
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range found {
			kept[filepath.Base(f)] = true
		}
	}
	for _, name := range fresh {
		want, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		got, err := os.ReadFile(filepath.Join("..", name))
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(got, want) {
			t.Errorf("%s differs from what the generator writes: run go generate in internal/simd", name)
		}
		delete(kept, name)
	}
	for name := range kept {
		t.Errorf("%s is no longer generated: remove it", name)
	}
}

func names(t *testing.T, dir string) (list []string) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		list = append(list, e.Name())
	}
	return list
}
