package main

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/s2n-go/s2n/bench/internal/proto"
)

func TestSummarize(t *testing.T) {
	require.Equal(t, Summary{Median: 3, Q1: 2, Q3: 4, Min: 1, Max: 5, N: 5}, summarize([]float64{5, 1, 4, 2, 3}))
	require.Equal(t, Summary{Median: 2.5, Q1: 1.75, Q3: 3.25, Min: 1, Max: 4, N: 4}, summarize([]float64{4, 3, 2, 1}))
	require.Equal(t, Summary{Median: 7, Q1: 7, Q3: 7, Min: 7, Max: 7, N: 1}, summarize([]float64{7}))
}

func TestSummarizeLeavesItsInputAlone(t *testing.T) {
	v := []float64{3, 1, 2}
	summarize(v)
	require.Equal(t, []float64{3, 1, 2}, v) // the order is that of the rounds
}

func TestCompare(t *testing.T) {
	// A machine that gets twice as slow in the second round: the ratio of each round is not moved by it.
	r, ok := compare([]float64{1, 2, 1}, []float64{2, 4, 2})
	require.True(t, ok)
	require.Equal(t, 0.5, r.OfMedians)
	require.Equal(t, Summary{Median: 0.5, Q1: 0.5, Q3: 0.5, Min: 0.5, Max: 0.5, N: 3}, r.Rounds)

	for name, v := range map[string][2][]float64{
		"none": {{}, {}}, "lengths": {{1}, {1, 2}}, "unknown": {{1}, {-1}}, "nothing": {{0}, {0}}, "divided by nothing": {{1}, {0}},
	} {
		_, ok := compare(v[0], v[1])
		require.False(t, ok, name)
	}
}

func TestMetrics(t *testing.T) {
	r := proto.NewResult()
	r.Ops, r.UserNS, r.SysNS, r.WallNS, r.Bytes = 10, 30_000, 20_000, 100_000, 1_000_000
	require.InDelta(t, 5.0, cpu.Of(r), 1e-9)
	require.InDelta(t, 10.0, wall.Of(r), 1e-9)
	require.InDelta(t, 10_000.0, throughput.Of(r), 1e-9) // 1 MB in 100 µs
	for _, m := range []Metric{allocs, heap, crossings, faults, switches, p99} {
		require.EqualValues(t, -1, m.Of(r), m.Name)
	}
	r.Ops = 0
	require.EqualValues(t, -1, cpu.Of(r))
	require.False(t, known([]float64{1, -1}))
	require.False(t, known(nil))
	require.True(t, known([]float64{0, 2}))
}
