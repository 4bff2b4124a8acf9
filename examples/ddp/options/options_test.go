package options

import (
	"bytes"
	"flag"
	"io"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestParseDefaults(t *testing.T) {
	o, err := Parse(nil, io.Discard)
	require.NoError(t, err)
	require.Equal(t, Default(), o)
	require.Equal(t, 4, o.Ranks)
	require.Zero(t, o.Batch%o.Ranks)
	require.EqualValues(t, 262144, o.FirstBucketBytes())
}

func TestParseAll(t *testing.T) {
	o, err := Parse([]string{"-ranks", "2", "-epochs=3", "-batch=64", "-images=9000", "-bucket-mb=2", "-first-bucket-mb=0.5", "-no-overlap",
		"-lr", "0.25", "-seed", "18446744073709551615", "-link", "1Gbps,50us", "-dump", "p.bin", "-json", "r.json"}, io.Discard)
	require.NoError(t, err)
	require.Equal(t, Options{
		Ranks: 2, Device: Host, Epochs: 3, Batch: 64, Images: 9000, BucketMiB: 2, FirstBucketMiB: 0.5, NoOverlap: true, LR: 0.25, Seed: 1<<64 - 1,
		Link: Link{BitsPerSecond: 1e9, Latency: 50 * time.Microsecond}, Dump: "p.bin", JSON: "r.json",
	}, o)
	require.EqualValues(t, 2<<20, o.BucketBytes())
	require.EqualValues(t, 1<<19, o.FirstBucketBytes())
}

func TestParseDevice(t *testing.T) {
	o, err := Parse([]string{"-device=cuda"}, io.Discard)
	require.NoError(t, err)
	require.Equal(t, Options{Device: CUDA, Backend: "ccl"}, Options{Ranks: o.Ranks, Device: o.Device, Backend: o.Backend}, "a rank for each GPU")
	o, err = Parse([]string{"-device=cuda", "-backend=nccl", "-ranks=2"}, io.Discard)
	require.NoError(t, err)
	require.Equal(t, 2, o.Ranks)
	require.Equal(t, "nccl", o.Backend)
}

func TestParseRefuses(t *testing.T) {
	for _, tc := range []struct {
		args []string
		want string
	}{
		{[]string{"-ranks", "0"}, "ddp: -ranks 0: must be 1 to 64"},
		{[]string{"-ranks", "65", "-batch", "65"}, "ddp: -ranks 65: must be 1 to 64"},
		{[]string{"-ranks", "7", "-batch", "100"}, "ddp: -batch 100: must be a multiple of -ranks 7, as all ranks take equal shares: try 98"},
		{[]string{"-ranks", "7", "-batch", "3"}, "ddp: -batch 3: must be a multiple of -ranks 7, as all ranks take equal shares: try 7"},
		{[]string{"-batch", "24001"}, "ddp: -batch 24001: must be 1 to 24000, the number of training images"},
		{[]string{"-images", "0", "-batch", "4"}, "ddp: -images 0: must be 1 to 24000\nddp: -batch 4: must be 1 to 0, the number of training images"},
		{[]string{"-epochs", "-1"}, "ddp: -epochs -1: must be at least 1"},
		{[]string{"-bucket-mb", "0"}, "ddp: -bucket-mb 0: must be above 0 and at most 4096"},
		{[]string{"-first-bucket-mb", "NaN"}, "ddp: -first-bucket-mb NaN: must be above 0 and at most 4096"},
		{[]string{"-lr", "+Inf"}, "ddp: -lr +Inf: must be a number above 0"},
		{[]string{"-lr", "0", "-epochs", "0"}, "ddp: -epochs 0: must be at least 1\nddp: -lr 0: must be a number above 0"},
		{[]string{"-dump", "x", "-json", "x"}, "ddp: -dump and -json both name x: give two files"},
		{[]string{"-device", "tpu"}, "ddp: -device tpu: must be host or cuda"},
		{[]string{"-backend", "nccl"}, "ddp: -backend nccl: is for -device cuda"},
		{[]string{"-device", "cuda", "-backend", "mpi"}, "ddp: -backend mpi: must be one of ccl, nccl"},
		{[]string{"-device", "cuda", "-link", "1Gbps"}, "ddp: -link shapes what goes through this machine's memory: not with -device cuda"},
		{[]string{"-device", "cuda", "-ranks", "0", "-batch", "0"}, "ddp: -batch 0: must be 1 to 24000, the number of training images"},
		{[]string{"train"}, `ddp: unexpected argument "train": it takes flags only, see -h`},
		{[]string{"-link", "fast"}, `invalid value "fast" for flag -link: link "fast": rate "fast": want a number with bps, kbps, Mbps or Gbps, such as 200Mbps`},
	} {
		_, err := Parse(tc.args, io.Discard)
		require.EqualError(t, err, tc.want, "%q", tc.args)
	}
}

func TestParseHelp(t *testing.T) {
	var out bytes.Buffer
	_, err := Parse([]string{"-h"}, &out)
	require.ErrorIs(t, err, flag.ErrHelp)
	for _, name := range []string{"-ranks", "-epochs", "-batch", "-bucket-mb", "-first-bucket-mb", "-no-overlap", "-lr", "-seed", "-link", "-dump", "-json"} {
		require.Contains(t, out.String(), "\n  "+name)
	}
}

func TestParseLink(t *testing.T) {
	for _, tc := range []struct {
		in    string
		want  Link
		print string
	}{
		{"", Link{}, ""},
		{"200Mbps", Link{BitsPerSecond: 200e6}, "200Mbps"},
		{"1Gbps,50us", Link{1e9, 50 * time.Microsecond}, "1Gbps,50us"},
		{"1.5gbps, 2ms", Link{1.5e9, 2 * time.Millisecond}, "1.5Gbps,2ms"},
		{"9600bps,0s", Link{BitsPerSecond: 9600}, "9.6kbps"},
	} {
		got, err := ParseLink(tc.in)
		require.NoError(t, err, tc.in)
		require.Equal(t, tc.want, got, tc.in)
		require.Equal(t, tc.print, got.String())
		again, err := ParseLink(got.String())
		require.NoError(t, err)
		require.Equal(t, got, again)
	}
}

func TestParseLinkRefuses(t *testing.T) {
	for in, want := range map[string]string{
		"200":          `link "200": rate "200": want a number with bps, kbps, Mbps or Gbps, such as 200Mbps`,
		"Mbps":         `link "Mbps": rate "Mbps": want a number with bps, kbps, Mbps or Gbps, such as 200Mbps`,
		"-1Mbps":       `link "-1Mbps": rate "-1Mbps": must be 1kbps to 10000Gbps`,
		"NaNMbps":      `link "NaNMbps": rate "NaNMbps": must be 1kbps to 10000Gbps`,
		"infGbps":      `link "infGbps": rate "infGbps": must be 1kbps to 10000Gbps`,
		"1Gbps,":       `link "1Gbps,": latency "": want a duration such as 50us or 2ms`,
		"1Gbps,50":     `link "1Gbps,50": latency "50": want a duration such as 50us or 2ms`,
		"1Gbps,-1us":   `link "1Gbps,-1us": latency -1µs: must be 0 to 10s`,
		"1Gbps,1m":     `link "1Gbps,1m": latency 1m0s: must be 0 to 10s`,
		"1Gbps,1us,ha": `link "1Gbps,1us,ha": latency "1us,ha": want a duration such as 50us or 2ms`,
	} {
		_, err := ParseLink(in)
		require.EqualError(t, err, want)
	}
}

func FuzzParseLink(f *testing.F) {
	f.Add("1Gbps,50us")
	f.Add("200Mbps")
	f.Add("0x1p-2kbps,1h")
	f.Fuzz(func(t *testing.T, s string) {
		l, err := ParseLink(s)
		if err != nil {
			require.Equal(t, Link{}, l)
			return
		}
		again, err := ParseLink(l.String())
		require.NoError(t, err)
		require.Equal(t, l, again)
	})
}
