package main

import (
	"math"
	"slices"

	"github.com/s2n-go/s2n/bench/internal/proto"
)

// Summary is what is told of the rounds of one side.
type Summary struct {
	Median float64 `json:"median"`
	Q1     float64 `json:"q1"` // a quarter of the rounds is below
	Q3     float64 `json:"q3"`
	Min    float64 `json:"min"`
	Max    float64 `json:"max"`
	N      int     `json:"n"`
}

// summarize needs one value at least.
func summarize(values []float64) Summary {
	v := slices.Sorted(slices.Values(values))
	return Summary{Median: quantile(v, 0.5), Q1: quantile(v, 0.25), Q3: quantile(v, 0.75), Min: v[0], Max: v[len(v)-1], N: len(v)}
}

// quantile of sorted values, between two neighbours by their distance.
func quantile(sorted []float64, q float64) float64 {
	at := q * float64(len(sorted)-1)
	i := int(at)
	if i+1 >= len(sorted) {
		return sorted[len(sorted)-1]
	}
	return sorted[i] + (at-float64(i))*(sorted[i+1]-sorted[i])
}

// Ratio compares two sides that ran in turn.
type Ratio struct {
	OfMedians float64 `json:"of_medians"`
	Rounds    Summary `json:"rounds"` // of the ratio in each round, whose two turns followed each other
}

// compare needs as many rounds of both; false if there are none, or any value is unknown.
func compare(side, against []float64) (Ratio, bool) {
	if len(side) == 0 || len(side) != len(against) {
		return Ratio{}, false
	}
	each := make([]float64, len(side))
	for i := range side {
		each[i] = side[i] / against[i]
		if math.IsNaN(each[i]) || math.IsInf(each[i], 0) || side[i] < 0 || against[i] < 0 {
			return Ratio{}, false
		}
	}
	return Ratio{OfMedians: summarize(side).Median / summarize(against).Median, Rounds: summarize(each)}, true
}

// A Metric is a number of an operation; -1 where the side does not know it.
type Metric struct {
	Name, Unit string
	Of         func(r proto.Result) float64
}

func perOp(of func(r proto.Result) int64, scale float64) func(proto.Result) float64 {
	return func(r proto.Result) float64 {
		n := of(r)
		if n < 0 || r.Ops <= 0 {
			return -1
		}
		return float64(n) / float64(r.Ops) * scale
	}
}

const micro = 1e-3 // of nanoseconds

var (
	cpu       = Metric{"cpu", "µs CPU/op", perOp(func(r proto.Result) int64 { return r.UserNS + r.SysNS }, micro)}
	wall      = Metric{"wall", "µs/op", perOp(func(r proto.Result) int64 { return r.WallNS }, micro)}
	allocs    = Metric{"allocs", "allocs/op", perOp(func(r proto.Result) int64 { return r.Allocs }, 1)}
	heap      = Metric{"alloc_bytes", "B/op", perOp(func(r proto.Result) int64 { return r.AllocBytes }, 1)}
	crossings = Metric{"crossings", "crossings/op", perOp(func(r proto.Result) int64 { return r.Crossings }, 1)}
	faults    = Metric{"faults", "page faults/op", perOp(func(r proto.Result) int64 { return r.Faults }, 1)}
	switches  = Metric{"switches", "context switches/op", perOp(func(r proto.Result) int64 { return r.Switches }, 1)}
	p99       = Metric{"p99", "ms", func(r proto.Result) float64 {
		if r.P99NS < 0 {
			return -1
		}
		return float64(r.P99NS) * 1e-6
	}}
	throughput = Metric{"throughput", "MB/s", func(r proto.Result) float64 {
		if r.Bytes <= 0 || r.WallNS <= 0 {
			return -1
		}
		return float64(r.Bytes) / float64(r.WallNS) * 1e3
	}}
)

// metrics are those of the JSON file.
var metrics = []Metric{cpu, wall, throughput, p99, allocs, heap, crossings, faults, switches}

func values(rounds []proto.Result, m Metric) []float64 {
	v := make([]float64, len(rounds))
	for i, r := range rounds {
		v[i] = m.Of(r)
	}
	return v
}

// known says whether a side could tell the metric, in every round.
func known(v []float64) bool {
	return len(v) > 0 && !slices.ContainsFunc(v, func(x float64) bool { return x < 0 })
}
