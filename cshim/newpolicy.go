//go:build linux && cgo

package cshim

// #include <stdlib.h>
// #include "s2nshim.h"
import "C"

import "unsafe"

// PolicyMax is how many entries a list of a policy can have here.
const PolicyMax = C.S2NSHIM_POLICY_MAX

// The lists of a policy, in a PolicyFault.
const (
	ListSuites  = C.S2NSHIM_LIST_SUITES
	ListGroups  = C.S2NSHIM_LIST_GROUPS
	ListSchemes = C.S2NSHIM_LIST_SCHEMES
	ListMin     = C.S2NSHIM_LIST_MIN // the two versions
	ListMax     = C.S2NSHIM_LIST_MAX
)

// What can be wrong with a policy.
const (
	FaultName        = C.S2NSHIM_FAULT_NAME
	FaultEmpty       = C.S2NSHIM_FAULT_EMPTY
	FaultTooMany     = C.S2NSHIM_FAULT_TOO_MANY
	FaultUnknown     = C.S2NSHIM_FAULT_UNKNOWN
	FaultUnavailable = C.S2NSHIM_FAULT_UNAVAILABLE
	FaultDuplicate   = C.S2NSHIM_FAULT_DUPLICATE
	FaultNotFIPS     = C.S2NSHIM_FAULT_NOT_FIPS
	FaultOrder       = C.S2NSHIM_FAULT_ORDER
	FaultMinOverMax  = C.S2NSHIM_FAULT_MIN_OVER_MAX
	FaultNeedsTLS13  = C.S2NSHIM_FAULT_NEEDS_TLS13
	FaultNoTLS13     = C.S2NSHIM_FAULT_NO_TLS13
	FaultNoCurve     = C.S2NSHIM_FAULT_NO_CURVE
	FaultRules       = C.S2NSHIM_FAULT_RULES
	FaultMemory      = C.S2NSHIM_FAULT_MEMORY
)

// PolicyFault is s2nshim_policy_fault.
type PolicyFault struct {
	Kind, List uint8
	Value      uint16
}

// NewPolicy is s2nshim_policy_new: it registers a policy for the life of the process,
// or returns each point that forbids it. Info.Hybrids is not read; no list may be
// longer than PolicyMax.
func NewPolicy(info *PolicyInfo) []PolicyFault {
	name := C.CString(info.Name)
	defer C.free(unsafe.Pointer(name))
	in := C.s2nshim_policy_info{name: name, min_version: C.uint16_t(info.MinVersion), max_version: C.uint16_t(info.MaxVersion)}
	if info.FIPS {
		in.fips = 1
	}
	list := func(to *[C.S2NSHIM_POLICY_MAX]C.uint16_t, from []uint16) C.uint16_t {
		for i, v := range from {
			to[i] = C.uint16_t(v)
		}
		return C.uint16_t(len(from))
	}
	in.n_suites = list(&in.suites, info.Suites)
	in.n_groups = list(&in.groups, info.Groups)
	in.n_schemes = list(&in.schemes, info.Schemes)

	var out [256]C.s2nshim_policy_fault
	n := min(int(C.s2nshim_policy_new(&in, &out[0], C.int32_t(len(out)))), len(out))
	faults := make([]PolicyFault, n)
	for i := range faults {
		faults[i] = PolicyFault{uint8(out[i].kind), uint8(out[i].list), uint16(out[i].value)}
	}
	return faults
}
