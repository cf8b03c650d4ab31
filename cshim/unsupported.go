//go:build !linux

package cshim

// The static FIPS module of AWS-LC exists for Linux only. The undefined name
// below is the error message.
var _ = s2n_runs_on_linux_only__the_static_FIPS_module_of_AWS_LC_is_not_built_elsewhere
