# shellcheck shell=bash
# Sourced by ./up and ./check: says what it does, installs what is missing, builds a preset. Needs bash and dpkg only.
# The caller has changed to the root of the tree and set -euo pipefail.

say() { printf '==> %s\n' "$*"; }
fail() {
  printf '%s: %s\n' "${0##*/}" "$*" >&2
  exit 1
}

# Names of the packages in tools/packages.txt.
wanted_packages() { sed -e 's/#.*//' -e 's/[[:space:]]//g' -e '/^$/d' tools/packages.txt; }

missing_packages() {
  local installed
  # shellcheck disable=SC2046  # names hold no blanks
  installed=$(dpkg-query -W -f='${db:Status-Status} ${Package}\n' $(wanted_packages) 2>/dev/null |
    sed -n 's/^installed //p' || true)
  local name
  for name in $(wanted_packages); do
    grep -qxF -- "$name" <<<"$installed" || echo "$name"
  done
}

# install_packages yes|ask: installs what tools/packages.txt lists and this machine lacks. Nothing missing: no network.
install_packages() {
  command -v dpkg-query >/dev/null ||
    fail "this is not a Debian system: install the equivalents of tools/packages.txt, then: cmake --preset release && cmake --build --preset release"
  local missing
  missing=$(missing_packages | tr '\n' ' ')
  missing=${missing% }
  [[ -n $missing ]] || return 0

  local count answer
  count=$(wc -w <<<"$missing")
  if [[ $1 == ask && -t 0 && -t 1 ]]; then
    read -r -p "Orla needs $count Debian packages that are not installed: $missing. Install them now? [Y/n] " answer
    [[ -z $answer || $answer == [yY]* ]] || fail "not installed; to do it yourself: apt-get install --no-install-recommends $missing"
  fi
  local -a root=()
  if [[ $(id -u) -ne 0 ]]; then
    command -v sudo >/dev/null ||
      fail "need root to install $count packages, and there is no sudo; as root: apt-get install --no-install-recommends $missing"
    root=(sudo)
  fi
  say "Installing $count Debian packages: $missing"
  local log
  log=$(mktemp)
  local -a apt=("${root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get -q -y -o DPkg::Lock::Timeout=300)
  # shellcheck disable=SC2086  # one word a package
  if ! { "${apt[@]}" update && "${apt[@]}" install --no-install-recommends $missing; } </dev/null >"$log" 2>&1; then
    tail -n 25 "$log" >&2
    fail "apt-get could not install: $missing (its whole output: $log)"
  fi
  rm -f "$log"
}

# Where the library that runs WebAssembly functions is kept, once for all trees of this user.
wasmtime_folder() {
  local version
  version=$(sed -n 's/^wasmtime==\([0-9.]*\).*/\1/p' tools/wasmtime.txt)
  echo "${XDG_CACHE_HOME:-$HOME/.cache}/orla/wasmtime-$version-$(uname -m)"
}

# Fetches the wheel that tools/wasmtime.txt names with pip, which checks its SHA-256, and keeps the library of it. Kept
# already: no network.
install_wasmtime() {
  local folder
  folder=$(wasmtime_folder)
  [[ ! -f $folder/libwasmtime.so ]] || return 0
  say "Fetching wasmtime into $folder"
  local work status=0
  work=$(mktemp -d)
  python3 -m pip download --quiet --disable-pip-version-check --no-deps --only-binary=:all: --require-hashes \
    --dest "$work" --requirement tools/wasmtime.txt >"$work/log" 2>&1 || status=$?
  if ((status == 0)); then
    # Renamed into its place: two builds at a time do not meet.
    python3 - "$work" "$folder" >>"$work/log" 2>&1 <<'PYTHON' || status=$?
import glob, os, sys, zipfile
work, folder = sys.argv[1:]
with zipfile.ZipFile(glob.glob(work + "/wasmtime-*.whl")[0]) as wheel:
    libraries = [name for name in wheel.namelist() if name.endswith("/_libwasmtime.so")]
    assert len(libraries) == 1, f"expected one _libwasmtime.so in the wheel, found {libraries}"
    os.makedirs(folder, exist_ok=True)
    part = f"{folder}/libwasmtime.so.{os.getpid()}"
    with open(part, "wb") as out:
        out.write(wheel.read(libraries[0]))
    os.rename(part, folder + "/libwasmtime.so")
PYTHON
  fi
  ((status == 0)) || { tail -n 25 "$work/log" >&2; fail "could not fetch wasmtime (needs python3-pip and a package index)"; }
  rm -rf "$work"
}

# As many compilers as there are cores, and one for each 1.5 GB of free memory at most.
jobs_at_once() {
  local cores memory_mb
  cores=$(nproc)
  memory_mb=$(awk '/^MemAvailable:/ { print int($2 / 1024) }' /proc/meminfo)
  local fit=$((memory_mb / 1500))
  ((fit >= 1)) || fit=1
  echo $((cores < fit ? cores : fit))
}

# build PRESET TARGET...: configures when needed and builds. Output goes to build/PRESET.log; a terminal sees progress.
build() {
  local preset=$1 log="build/$1.log" started=$SECONDS
  shift
  mkdir -p build
  if [[ ! -f build/$preset/build.ninja ]]; then
    say "Configuring $preset"
    if ! cmake --preset "$preset" >"$log" 2>&1; then
      rm -f "build/$preset/build.ninja"
      tail -n 25 "$log" >&2
      fail "configuring $preset failed (whole output: $log)"
    fi
  fi
  say "Building $preset: $*"
  local status=0
  if [[ -t 1 ]]; then
    cmake --build "build/$preset" -j "$(jobs_at_once)" --target "$@" 2>&1 | tee "$log" |
      awk '/^\[[0-9]+\/[0-9]+\]/ { printf "\r\033[K    %.100s", $0; fflush() } END { printf "\r\033[K" }' || status=$?
  else
    cmake --build "build/$preset" -j "$(jobs_at_once)" --target "$@" >"$log" 2>&1 || status=$?
  fi
  if ((status != 0)); then
    grep -E -A12 '^FAILED: |[Ee]rror: ' "$log" | head -n 60 >&2 || tail -n 40 "$log" >&2
    fail "building $preset failed (whole output: $log)"
  fi
  local took=$((SECONDS - started))
  ((took < 5)) || say "Built $preset in $took s"
}
