// Package buildtest holds the tests of build.sh and of how Go finds what it
// built. They run build.sh, go, nm and objcopy, and read the library itself.
//
// Tests that compile AWS-LC anew take minutes, so they run only with
// S2N_TEST_BUILD=1; .ci/run sets it.
package buildtest
