//go:build linux && cgo

package cshim

// #include <stdlib.h>
// #include "s2nshim.h"
import "C"

import "unsafe"

// PolicyInfo is s2nshim_policy_info.
type PolicyInfo struct {
	Name                    string
	FIPS                    bool
	MinVersion, MaxVersion  uint16
	Suites, Groups, Schemes []uint16 // groups: hybrids first
	Hybrids                 int      // how many of Groups have an ML-KEM part
}

// PolicyNames are s2n's policies, in its order.
func PolicyNames() []string {
	var names []string
	for i := C.int32_t(0); ; i++ {
		name := C.s2nshim_policy_name(i)
		if name == nil {
			return names
		}
		names = append(names, C.GoString(name))
	}
}

// GetPolicy returns what a policy holds. found is false for an unknown name, and
// usable is false for one that s2n keeps only to refuse it.
func GetPolicy(name string) (info PolicyInfo, found, usable bool) {
	cname := C.CString(name)
	defer C.free(unsafe.Pointer(cname))
	var out C.s2nshim_policy_info
	switch C.s2nshim_policy_get(cname, &out) {
	case -1:
		return info, false, false
	case -2:
		return info, true, false
	}
	list := func(from *[C.S2NSHIM_POLICY_MAX]C.uint16_t, n C.uint16_t) []uint16 {
		to := make([]uint16, n)
		for i := range to {
			to[i] = uint16(from[i])
		}
		return to
	}
	return PolicyInfo{
		Name: name, FIPS: out.fips != 0, MinVersion: uint16(out.min_version), MaxVersion: uint16(out.max_version),
		Suites: list(&out.suites, out.n_suites), Groups: list(&out.groups, out.n_groups),
		Schemes: list(&out.schemes, out.n_schemes), Hybrids: int(out.n_hybrids),
	}, true, true
}
