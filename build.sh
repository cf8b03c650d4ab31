#!/usr/bin/env bash
# Builds libs2nshim.a: s2n-tls, the AWS-LC FIPS module and the shim of cshim/src
# in one static library that exports s2nshim_* and nothing else.
set -euo pipefail
shopt -s inherit_errexit

usage() {
  cat <<'EOF'
usage: [FIPS_MODULE=3|3.1|4] ./build.sh [--debug | --asan] [--prefix [DIR]]

  --debug         s2n-tls and the shim with -Og -g and without LTO
  --asan          s2n-tls and the shim with AddressSanitizer (AWS-LC without it)
  --prefix [DIR]  also install library, headers and pkg-config file below DIR
                  (default /usr/local)
  -h, --help      this text

Environment:
  FIPS_MODULE  which AWS-LC FIPS module to link: 3 (default), 3.1 or 4
  S2N_SRC      an s2n-tls source tree to use instead of the pinned one
  AWSLC_SRC    an AWS-LC source tree to use instead of the pinned one
  CC           the C compiler (default cc). LTO with gcc only.

The result is third_party/out/{lib,include}, which the Go package finds by
itself. Other modules and flavours stay built beside it; asking for one of them
again only switches over.
EOF
}

root=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd -P)
third_party=$root/third_party
out=$third_party/out

say() { printf 'build.sh: %s\n' "$*"; }
die() { printf 'build.sh: error: %s\n' "$*" >&2; exit 1; }

# --- what is asked for -------------------------------------------------------

flavour=release
prefix=
while [ $# -gt 0 ]; do
  case $1 in
    --debug|--asan)
      [ "$flavour" = release ] || die "--debug and --asan exclude each other"
      flavour=${1#--} ;;
    --prefix)
      prefix=/usr/local
      if [ $# -gt 1 ] && [ "${2#-}" = "$2" ]; then prefix=$2; shift; fi
      [ -n "$prefix" ] || die "--prefix needs a folder" ;;
    --prefix=*)
      prefix=${1#--prefix=}
      [ -n "$prefix" ] || die "--prefix needs a folder" ;;
    -h|--help) usage; exit 0 ;;
    *) die "unknown argument: $1 (./build.sh --help lists them)" ;;
  esac
  shift
done

module=${FIPS_MODULE:-3}
case $module in
  3|3.1|4) ;;
  *) die "FIPS_MODULE=$module: there are 3, 3.1 and 4" ;;
esac

# own_source VAR DIR FILE: DIR as an absolute path, which must hold FILE.
own_source() {
  [ -e "$2/$3" ] || die "$1=$2: no $3 in it"
  (cd "$2" && pwd -P)
}

s2n_src=
[ -z "${S2N_SRC:-}" ] || s2n_src=$(own_source S2N_SRC "$S2N_SRC" api/s2n.h)
awslc_src=
[ -z "${AWSLC_SRC:-}" ] || awslc_src=$(own_source AWSLC_SRC "$AWSLC_SRC" crypto/fipsmodule)

# For the tests only: AWS-LC with one of its known-answer tests made to fail
# (its own FIPS_BREAK_TEST). Never becomes the active result.
break_test=${S2NSHIM_FIPS_BREAK_TEST:-}
# Likewise: the shim without one of its own systems, whose tests must fail then.
off=${S2NSHIM_OFF:-}
case $off in
  ''|reuse|hash|wipe) ;;
  *) die "S2NSHIM_OFF=$off: there are reuse, hash and wipe" ;;
esac

[ "$(uname -s)" = Linux ] ||
  die "this is $(uname -s): the static FIPS module of AWS-LC builds on Linux only"

# --- tools -------------------------------------------------------------------

# need TOOL DEBIAN FEDORA ALPINE: ends with the package's name if it is missing.
need() {
  command -v "$1" >/dev/null 2>&1 ||
    die "$1 not found. Install it: Debian/Ubuntu: apt install $2; Fedora: dnf install $3; Alpine: apk add $4"
}

cc=${CC:-cc}
# CC may carry flags ("gcc -m64") or a wrapper ("ccache gcc").
read -ra cc_words <<<"$cc"
if [ -n "${CC:-}" ]; then
  command -v "${cc_words[0]}" >/dev/null 2>&1 || die "CC=$CC: ${cc_words[0]} not found"
else
  need cc gcc gcc 'gcc musl-dev'
fi
need cmake cmake cmake cmake
need perl perl perl perl
need go golang-go golang go
for tool in ar ld nm objcopy; do need $tool binutils binutils binutils; done
need sha256sum coreutils coreutils coreutils
need tar tar tar tar
need gzip gzip gzip gzip
need flock util-linux util-linux flock
if command -v ninja >/dev/null 2>&1; then
  generator=Ninja
elif command -v make >/dev/null 2>&1; then
  generator='Unix Makefiles'
else
  need ninja ninja-build ninja-build samurai
fi
jobs=$(nproc 2>/dev/null || echo 2)

# --- one at a time -----------------------------------------------------------

mkdir -p "$out/src" "$out/build"
exec 9>"$out/.lock"
if ! flock -n 9; then
  say "another build.sh is at work in this checkout, waiting for it"
  flock 9
fi

# --- sources -----------------------------------------------------------------

# pinned DIR CRATE FIELD: a field of CRATE in third_party/DIR/Cargo.lock.
pinned() {
  awk -v crate="$2" -v field="$3" '
    $1 == "name" { mine = ($3 == "\"" crate "\"") }
    mine && $1 == field { gsub(/"/, "", $3); print $3; exit }
  ' "$third_party/$1/Cargo.lock"
}

# The hash of every file of a tree. Sees files that were added, too.
tree_hashes() {
  (cd "$1" && find . ! -type d -print0 | LC_ALL=C sort -z | xargs -0 sha256sum)
}

# differing HASHES HASHES: the first few files in which the two differ.
differing() {
  { diff "$1" "$2" || true; } | awk '/^[-+<>]/ && $NF ~ /^\.\// && !seen[$NF]++ && n++ < 5 { print "    " $NF }'
}

# cached_crate FILE.crate CHECKSUM: prints the path in cargo's download cache.
cached_crate() {
  local file
  for file in "${CARGO_HOME:-$HOME/.cargo}"/registry/cache/*/"$1"; do
    [ -f "$file" ] || continue
    if [ "$(sha256sum <"$file" | cut -d' ' -f1)" = "$2" ]; then
      printf '%s\n' "$file"
      return
    fi
    die "refused: $file does not have the checksum that Cargo.lock pins. Delete it and run again to download it anew"
  done
}

# unpack DIR CRATE PART: makes sure that out/src/CRATE-VERSION is, byte for byte,
# what the archive of that checksum holds, and prints the path of PART in it.
#
# cargo downloads and checks; we unpack for ourselves, since cargo never looks
# again at a tree it has once unpacked.
unpack() {
  local version checksum name tree crate unpacked
  version=$(pinned "$1" "$2" version)
  checksum=$(pinned "$1" "$2" checksum)
  if [ -z "$version" ] || [ -z "$checksum" ]; then
    die "third_party/$1/Cargo.lock does not pin $2"
  fi
  name=$2-$version
  tree=$out/src/$name

  if [ -d "$tree" ] && [ "$(cat "$tree.crate" 2>/dev/null)" = "$checksum" ]; then
    tree_hashes "$tree" >"$tree.now"
    if ! cmp -s "$tree.sha256" "$tree.now"; then
      die "refused: third_party/out/src/$name was altered after it was unpacked:
$(differing "$tree.sha256" "$tree.now")
  Delete that folder to unpack it anew; S2N_SRC and AWSLC_SRC are for sources of your own"
    fi
    rm -f "$tree.now"
    printf '%s\n' "$tree/$3"
    return
  fi

  crate=$(cached_crate "$name.crate" "$checksum")
  if [ -z "$crate" ]; then
    need cargo cargo cargo cargo
    say "downloading $name" >&2
    cargo fetch --quiet --locked --manifest-path "$third_party/$1/Cargo.toml" >&2 ||
      die "cargo could not fetch $name, or refused what it got (see above)"
    crate=$(cached_crate "$name.crate" "$checksum")
    [ -n "$crate" ] ||
      die "cargo fetched $name, but kept no $name.crate below ${CARGO_HOME:-$HOME/.cargo}/registry/cache; with a vendored registry use S2N_SRC and AWSLC_SRC"
  fi

  rm -rf "$tree" "$tree".*
  mkdir "$tree.tmp"
  # No --strip-components: what the archive calls itself is part of the check.
  gzip -dc "$crate" | tar -xf - -C "$tree.tmp"
  [ -d "$tree.tmp/$name/$3" ] || die "$crate holds no $name/$3"
  tree_hashes "$tree.tmp/$name" >"$tree.sha256"
  for unpacked in "${crate%/cache/*}"/src/*/"$name"; do
    [ -d "$unpacked" ] || continue
    # .cargo-ok is cargo's own mark in its tree.
    tree_hashes "$unpacked" | grep -v ' \./\.cargo-ok$' >"$tree.now"
    cmp -s "$tree.sha256" "$tree.now" ||
      die "refused: $unpacked was altered after cargo unpacked it:
$(differing "$tree.sha256" "$tree.now")
  Delete that folder and run again"
    rm -f "$tree.now"
  done
  mv "$tree.tmp/$name" "$tree"
  rmdir "$tree.tmp"
  printf '%s\n' "$checksum" >"$tree.crate"
  printf '%s\n' "$tree/$3"
}

s2n_version=custom
if [ -z "$s2n_src" ]; then
  s2n_src=$(unpack s2n-tls s2n-tls-sys lib)
  s2n_version=$(pinned s2n-tls s2n-tls-sys version)
fi
awslc_version=custom
if [ -z "$awslc_src" ]; then
  awslc_src=$(unpack "aws-lc-fips-$module" aws-lc-fips-sys aws-lc)
  awslc_version=$(pinned "aws-lc-fips-$module" aws-lc-fips-sys version)
fi

# --- building ----------------------------------------------------------------

compiler=$("${cc_words[@]}" --version 2>/dev/null) || die "CC=$cc --version failed"
compiler=${compiler%%$'\n'*}
toolchain="$(command -v "${cc_words[0]}") ${cc_words[*]:1} | $compiler | $(uname -m) | $generator"

short_hash() { sha256sum | cut -c1-8; }

# Build folders are named by all that may differ side by side.
variant=
[ -z "${CC:-}" ] || variant+=-$(basename "${cc_words[-1]}")
awslc_variant=$variant
[ "$awslc_version" != custom ] || awslc_variant+=-src$(printf %s "$awslc_src" | short_hash)
[ -z "$break_test" ] || awslc_variant+=-broken-$break_test
awslc_dir=$out/build/$module-awslc$awslc_variant
s2n_variant=$awslc_variant
[ "$s2n_version" != custom ] || s2n_variant+=-s2n$(printf %s "$s2n_src" | short_hash)
[ -z "$off" ] || s2n_variant+=-off-$off
s2n_dir=$out/build/$module-$flavour$s2n_variant

# configured DIR CONFIG: whether DIR was made with CONFIG and its last build was
# not killed. Anything else is thrown away: a compiler that was killed may leave
# half an object behind that looks finished.
configured() {
  if [ "$(cat "$1/.config" 2>/dev/null)" = "$2" ] && [ ! -e "$1/.at-work" ]; then
    return 0
  fi
  rm -rf "$1"
  mkdir -p "$1"
  return 1
}

# run_build DIR TARGET…: cmake --build, quiet unless it fails.
run_build() {
  local dir=$1 log=$1/build.log status=0
  shift
  touch "$dir/.at-work"
  cmake --build "$dir" --parallel "$jobs" --target "$@" >"$log" 2>&1 || status=$?
  # Over 128: killed, not failed.
  [ "$status" -gt 128 ] || rm -f "$dir/.at-work"
  if [ "$status" != 0 ]; then
    # What the compiler said, without the progress and ninja's command lines.
    awk '/^FAILED:/ { print; getline; next } !/^(\[|-- )/' "$log" | tail -n 60 >&2
    die "the build in ${dir#"$root"/} failed (all of it: ${log#"$root"/})"
  fi
}

# run_cmake DIR ARGS…: configures DIR, quiet unless it fails.
run_cmake() {
  local dir=$1
  shift
  CC=$cc cmake -B "$dir" -G "$generator" "$@" >"$dir/configure.log" 2>&1 || {
    tail -n 40 "$dir/configure.log" >&2
    die "cmake failed for ${dir#"$root"/} (all of it: ${dir#"$root"/}/configure.log)"
  }
}

# AWS-LC is built as its security policy has it and never patched: Release, and
# without the caller's CFLAGS. It builds its module with small programs in Go.
awslc_cmake=(
  -DCMAKE_BUILD_TYPE=Release -DFIPS=1 -DBUILD_SHARED_LIBS=0
  -DBUILD_TESTING=0 -DBUILD_LIBSSL=0 -DBUILD_TOOL=0
  # Newer AWS-LC writes into its own sources otherwise.
  -DENABLE_SOURCE_MODIFICATION=OFF
)
[ -z "$break_test" ] || awslc_cmake+=("-DFIPS_BREAK_TEST=$break_test")

build_awslc() {
  local config
  config="$toolchain | $awslc_src $awslc_version | ${awslc_cmake[*]}"
  if [ "$awslc_version" != custom ] && [ -e "$awslc_dir/.done" ] && configured "$awslc_dir" "$config"; then
    return
  fi
  say "building AWS-LC for FIPS_MODULE=$module ($awslc_version)"
  # An interrupted first build goes on where it was: with no log entry for an
  # object ninja makes it again. make would trust it.
  if [ "$generator" = Ninja ] && [ -e "$awslc_dir/.first" ]; then rm -f "$awslc_dir/.at-work"; fi
  (
    unset CFLAGS CPPFLAGS CXXFLAGS LDFLAGS ASMFLAGS
    # The caller's Go settings are for the caller's code.
    export GOFLAGS='' GOWORK=off GO111MODULE=on CGO_ENABLED=0
    if ! configured "$awslc_dir" "$config"; then
      run_cmake "$awslc_dir" -S "$awslc_src" "${awslc_cmake[@]}"
      touch "$awslc_dir/.first"
      printf '%s\n' "$config" >"$awslc_dir/.config"
    fi
    run_build "$awslc_dir" crypto
  )
  rm -f "$awslc_dir/.first"
  touch "$awslc_dir/.done"
}

build_s2n() {
  local config build_type=Release
  [ "$flavour" != debug ] || build_type=Debug
  local args=(
    -S "$root/cshim" "-DCMAKE_BUILD_TYPE=$build_type"
    "-DS2N_SRC=$s2n_src" "-DAWSLC_INCLUDE=$awslc_src/include" "-DAWSLC_LIB=$libcrypto"
    "-DS2NSHIM_ASAN=$([ "$flavour" = asan ] && echo ON || echo OFF)" "-DS2NSHIM_OFF=$off"
  )
  config="$toolchain | ${CFLAGS:-} | $s2n_version | ${args[*]}"
  if ! configured "$s2n_dir" "$config"; then
    say "building s2n-tls ($s2n_version, $flavour)"
    run_cmake "$s2n_dir" "${args[@]}"
    printf '%s\n' "$config" >"$s2n_dir/.config"
  fi
  run_build "$s2n_dir" s2n shim
}

# join: libs2n, the shim and libcrypto become one relocatable object, in which
# every symbol but s2nshim_* is local. So a second libcrypto in a program cannot
# clash with ours, and no part of ours can be replaced from outside.
#
# The result goes to a folder named by its own hash and is then linked to by
# name: whoever is just reading the old one keeps it whole.
join() {
  local inputs work id dir symbol abi flags=()
  inputs=$(cat "$s2n_dir/lib/libs2n.a" "$s2n_dir/lib/libshim.a" "$libcrypto" \
    "$root/build.sh" "$root/cshim/s2nshim.h" "$root/cshim/build.h" | sha256sum | cut -d' ' -f1)
  if [ "$(cat "$s2n_dir/result/inputs" 2>/dev/null)" = "$inputs" ]; then
    return
  fi
  say "linking libs2nshim.a"
  work=$s2n_dir/join.tmp
  rm -rf "$work"
  mkdir -p "$work/include" "$work/lib"
  if grep -q -e '-flto' "$s2n_dir/compile_commands.json"; then
    flags=(-O2 -fPIC "-flto=$jobs" "-ffile-prefix-map=$root=." -flinker-output=nolto-rel)
  fi
  (
    # Here, so that the names of gcc's temporary files are always the same.
    cd "$work" || exit
    # s2n's assembler options are of no use in a link, and gcc says so each time.
    "${cc_words[@]}" -r -nostdlib "${flags[@]}" -o all.o \
      -Wl,--whole-archive "$s2n_dir/lib/libs2n.a" "$s2n_dir/lib/libshim.a" \
      -Wl,--no-whole-archive "$libcrypto" 2>messages || { cat messages >&2; exit 1; }
    grep -v "Extra option to .-Xassembler." messages >&2 || true
    objcopy -w --keep-global-symbol='s2nshim_*' all.o s2nshim.o
  ) || die "joining the library failed"

  # A Go object compiled against another library must not link with this one, so
  # it asks for this symbol. The name is what a user sees in the linker's error.
  id=$(sha256sum <"$work/s2nshim.o" | cut -d' ' -f1)
  symbol=s2nshim_build_${id:0:12}__library_was_rebuilt__run_go_clean_cache
  abi=$(awk '$2 == "S2NSHIM_ABI" && $1 == "#define" { print $3 }' "$root/cshim/build.h")
  cat >"$work/include/s2nshim_build.h" <<EOF
/* Made by build.sh: which libs2nshim.a this is. */
#ifndef S2NSHIM_BUILD_H
#define S2NSHIM_BUILD_H
#define S2NSHIM_BUILD_ID "$id"
#define S2NSHIM_BUILD_ABI $abi
#define S2NSHIM_BUILD_MODULE "$module"
#define S2NSHIM_BUILD_FLAVOUR "$flavour${off:+ without $off}"
#define S2NSHIM_BUILD_AWSLC "$awslc_version"
#define S2NSHIM_BUILD_S2N "$s2n_version"
#define S2NSHIM_BUILD_SYMBOL $symbol
extern const char S2NSHIM_BUILD_SYMBOL[];
extern const char s2nshim_build_id[]; /* S2NSHIM_BUILD_ID; the shim may refer to it */
#endif
EOF
  printf '#include "include/s2nshim_build.h"\nconst char S2NSHIM_BUILD_SYMBOL[] = S2NSHIM_BUILD_ID;\nconst char s2nshim_build_id[] = S2NSHIM_BUILD_ID;\n' \
    >"$work/build_id.c"
  (
    cd "$work"
    "${cc_words[@]}" -O2 -fPIC -c -o build_id.o build_id.c
    ar rcD lib/libs2nshim.a s2nshim.o build_id.o
    rm -f all.o s2nshim.o build_id.o build_id.c messages
  )
  cp "$root/cshim/s2nshim.h" "$work/include/" 2>/dev/null || true
  printf '%s\n' "$inputs" >"$work/inputs"

  dir=result-${id:0:12}
  if [ -d "$s2n_dir/$dir" ]; then
    # The same code from other inputs: only what is beside it is new.
    mv -f "$work/include/"* "$s2n_dir/$dir/include/"
    mv -f "$work/lib/"* "$s2n_dir/$dir/lib/"
    mv -f "$work/inputs" "$s2n_dir/$dir/inputs"
    rm -rf "$work"
  else
    mv "$work" "$s2n_dir/$dir"
  fi
  point "$s2n_dir/result" "$dir" || true
  changed=1
}

# point LINK TARGET: LINK becomes a symbolic link to TARGET in one step. False if
# it was one already.
point() {
  [ "$(readlink "$1" 2>/dev/null)" != "$2" ] || return 1
  ln -sfn "$2" "$1.tmp"
  mv -fT "$1.tmp" "$1"
}

# activate: makes the result the one that Go finds. The copy of the header beside
# the cgo files is for Go's build cache, which hashes the .h files of a package
# but looks at no library.
activate() {
  local target
  target=build/$(basename "$s2n_dir")/$(readlink "$s2n_dir/result")
  if point "$out/active" "$target"; then changed=1; fi
  point "$out/lib" active/lib || true
  point "$out/include" active/include || true
  if ! cmp -s "$out/include/s2nshim_build.h" "$root/cshim/zbuild.h"; then
    cp "$out/include/s2nshim_build.h" "$root/cshim/.zbuild.h.tmp"
    mv -f "$root/cshim/.zbuild.h.tmp" "$root/cshim/zbuild.h"
    changed=1
  fi
  # Results that nothing points to any more.
  local old
  for old in "$s2n_dir"/result-*; do
    [ "$(basename "$old")" = "$(readlink "$s2n_dir/result")" ] || rm -rf "$old"
  done
}

# --- installing --------------------------------------------------------------

# put FILE FOLDER: copies so that nobody ever sees half a file.
put() {
  cmp -s "$1" "$2/$(basename "$1")" && return
  cp "$1" "$2/.$(basename "$1").tmp"
  chmod 644 "$2/.$(basename "$1").tmp"
  mv -f "$2/.$(basename "$1").tmp" "$2/$(basename "$1")"
}

install_prefix() {
  local result=$s2n_dir/result id before
  if ! mkdir -p "$prefix/lib/pkgconfig" "$prefix/include" 2>/dev/null || [ ! -w "$prefix/lib" ]; then
    die "cannot write below $prefix: choose another with --prefix DIR, or run as root"
  fi
  prefix=$(cd "$prefix" && pwd -P)
  id=$(sed -n 's/.*BUILD_ID "\(.*\)"/\1/p' "$result/include/s2nshim_build.h")
  before=$(sed -n 's/.*BUILD_ID "\(.*\)"/\1/p' "$prefix/include/s2nshim_build.h" 2>/dev/null) || true
  # Relative to the file itself, so that the tree may be moved or packaged.
  cat >"$s2n_dir/s2nshim.pc" <<EOF
prefix=\${pcfiledir}/../..
build_id=$id
fips_module=$module

Name: s2nshim
Description: s2n-tls and the AWS-LC FIPS module in one library, for the Go package s2n
Version: $(sed -n 's/.*BUILD_ABI //p' "$result/include/s2nshim_build.h")
Cflags: -I\${prefix}/include
Libs: -L\${prefix}/lib -ls2nshim -lpthread -ldl
EOF
  put "$result/lib/libs2nshim.a" "$prefix/lib"
  put "$root/cshim/s2nshim.h" "$prefix/include"
  put "$result/include/s2nshim_build.h" "$prefix/include"
  put "$s2n_dir/s2nshim.pc" "$prefix/lib/pkgconfig"
  say "installed below $prefix"
  if [ -n "$before" ] && [ "$before" != "$id" ]; then
    say "it replaces another build there, which Go's build cache cannot see:
  programs that use it need 'go build -a' (or 'go clean -cache') once"
  fi
}

# --- all of it ---------------------------------------------------------------

changed=0
SECONDS=0
libcrypto=$awslc_dir/crypto/libcrypto.a
build_awslc
build_s2n
join
if [ -n "$break_test" ]; then
  say "broken on purpose, so not made active: ${s2n_dir#"$root"/}/result"
  exit 0
fi
[ -n "$off" ] || activate
what="FIPS_MODULE=$module (aws-lc-fips-sys $awslc_version), s2n-tls $s2n_version, $flavour"
if [ -n "$off" ]; then
  say "without $off, so not made active: ${s2n_dir#"$root"/}/result"
elif [ "$changed" = 1 ]; then
  say "third_party/out/lib/libs2nshim.a is ready: $what, ${SECONDS} s"
else
  say "nothing to do: $what"
fi
[ -z "$prefix" ] || install_prefix
