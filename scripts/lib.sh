# shellcheck shell=bash
# Shared by the scripts beside it: sourced, never run.
set -Eeuo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd -P)

say() { printf '==> %s\n' "$*"; }

die() {
  printf '%s: %s\n' "${0##*/}" "$*" >&2
  exit 1
}

trap 'die "stopped by a failed command: $BASH_COMMAND (line $LINENO)"' ERR

# quietly LOG COMMAND...: output goes to build/LOG and is shown only if the command fails.
quietly() {
  local log=$root/build/$1
  shift
  "$@" >"$log" 2>&1 || {
    tail -n 40 "$log" >&2
    return 1
  }
}

# make_build_folder: build/ exists and is ours, or a sentence says what is wrong with it.
make_build_folder() {
  mkdir -p "$root/build" 2>/dev/null || true
  [[ -d $root/build && -w $root/build ]] ||
    die "$root/build cannot be written by $(id -un): delete it or run this as its owner."
}

# packages SECTION...: the names listed in packages.txt under these sections.
packages() {
  local section name _ wanted
  while read -r section name _; do
    for wanted in "$@"; do
      if [[ $section == "$wanted" ]]; then printf '%s\n' "$name"; fi
    done
  done <"$root/scripts/packages.txt"
}

is_installed() {
  [[ $(dpkg-query -W -f='${db:Status-Status}' "$1" 2>/dev/null) == installed ]]
}

# as_root COMMAND...: directly for root, else through sudo; asks for a password only on a terminal.
as_root() {
  if [[ $(id -u) == 0 ]]; then
    "$@"
  else
    sudo "$@"
  fi
}

can_be_root() {
  [[ $(id -u) == 0 ]] && return 0
  command -v sudo >/dev/null || return 1
  sudo -n true 2>/dev/null || { [[ -t 0 ]] && sudo -v; }
}

apt() { as_root env DEBIAN_FRONTEND=noninteractive apt-get -o DPkg::Lock::Timeout=300 "$@" </dev/null; }

# install_packages SECTION...: installs what is missing and nothing else; asks apt nothing if all is there.
install_packages() {
  local name missing=()
  command -v apt-get >/dev/null ||
    die "This script installs Debian packages and apt-get is not here: install by hand what scripts/packages.txt lists, then run 'cmake --preset release' and 'cmake --build --preset release'."
  for name in $(packages "$@" | sort -u); do
    is_installed "$name" || missing+=("$name")
  done
  [[ ${#missing[@]} -gt 0 ]] || return 0
  can_be_root || die "Neither root nor sudo is available; have an administrator run: apt-get install ${missing[*]}"
  make_build_folder
  say "Installing with apt-get: ${missing[*]}"
  # A stale or unreachable extra source must not stop us: the install below decides.
  quietly apt-update.log apt update || say "apt-get update failed; trying with the package lists that are here"
  quietly apt-install.log apt install -y --no-install-recommends --no-remove "${missing[@]}" ||
    die "apt-get could not install ${missing[*]}; its own words are above."
}

# cached PRESET LINE: whether CMake's cache holds this line.
cached() { grep -qxF "$2" "$root/build/$1/CMakeCache.txt" 2>/dev/null; }

# configure PRESET TESTS: configures build/PRESET unless that is done. TESTS: "with-tests", or "without-tests", which
# leaves a folder that already has them as it is, so that the two commands do not undo each other's work.
configure() {
  local preset=$1 tests=$2 option=-DOCTAVO_TESTS=OFF
  make_build_folder
  # What was built in another place names files of that place: a moved or copied checkout starts anew.
  cached "$preset" "CMAKE_HOME_DIRECTORY:INTERNAL=$root" || rm -rf "${root:?}/build/$preset"
  if [[ -f $root/build/$preset/build.ninja ]]; then
    [[ $tests == with-tests ]] || return 0
    ! cached "$preset" "OCTAVO_TESTS:BOOL=ON" || return 0
  fi
  [[ $tests != with-tests ]] || option=-DOCTAVO_TESTS=ON
  say "Configuring build/$preset"
  (cd "$root" && quietly "configure-$preset.log" cmake --preset "$preset" "$option") ||
    die "CMake could not configure build/$preset; its own words are above."
}

# build PRESET TARGET...
build() {
  local preset=$1
  shift
  say "Building $* (build/$preset)"
  cmake --build "$root/build/$preset" --parallel "$(nproc)" --target "$@" ||
    die "The build of build/$preset failed; the compiler's words are above."
}
