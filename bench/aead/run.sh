#!/usr/bin/env bash
# Package aead against crypto/cipher in FIPS mode and plain C in one process, then
# against boringcrypto in another. Arguments go to both programs (-rounds, -sizes …).
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd -P)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$root"

module=$(sed -n 's/.*BUILD_MODULE "\(.*\)"/\1/p' third_party/out/include/s2nshim_build.h)
version=$(sed -n 's/.*BUILD_AWSLC "\(.*\)"/\1/p' third_party/out/include/s2nshim_build.h)
export CGO_CFLAGS="-O2 -I$root/third_party/out/src/aws-lc-fips-sys-$version/aws-lc/include"
export CGO_LDFLAGS="$root/third_party/out/build/$module-awslc/crypto/libcrypto.a"
GOFIPS140=v1.0.0 go build -tags s2n_plainc -o "$work/fips" ./bench/aead
unset CGO_CFLAGS CGO_LDFLAGS
GOEXPERIMENT=boringcrypto go build -o "$work/boring" ./bench/aead

echo "module $module ($version), $(go version | cut -d' ' -f3), load $(cut -d' ' -f1-3 /proc/loadavg)"
GODEBUG=fips140=on "$work/fips" "$@"
"$work/boring" "$@"
