# Shared by the scripts in this folder: source it, do not run it.

set -euo pipefail
export DEBIAN_FRONTEND=noninteractive
REPO=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
TARGET=${CARGO_TARGET_DIR:-$REPO/target}
export REPO TARGET
command -v cargo >/dev/null || PATH=$PATH:$HOME/.cargo/bin

# die MESSAGE: one line that says what is wrong and what to do.
die() {
    echo "$(basename "$0"): $*" >&2
    exit 1
}

# need_packages PACKAGE...: installs those which are missing.
need_packages() {
    local package missing=()
    for package in "$@"; do
        dpkg-query -W -f '${Status}' "$package" 2>/dev/null | grep -q 'install ok installed' ||
            missing+=("$package")
    done
    [ ${#missing[@]} -eq 0 ] && return
    [ "$(id -u)" = 0 ] || die "these packages are missing: ${missing[*]}; run as root, or install them"
    echo "installing ${missing[*]}"
    apt-get -q update </dev/null >"$TARGET/apt.log" 2>&1 ||
        die "apt-get update failed, see $TARGET/apt.log; check the machine's package sources"
    apt-get -qy -o Dpkg::Use-Pty=0 install --no-install-recommends "${missing[@]}" \
        </dev/null >>"$TARGET/apt.log" 2>&1 ||
        die "installing ${missing[*]} failed, see $TARGET/apt.log"
}

# phase NAME COMMAND...: runs a command and remembers how long it took.
PHASES=()
phase() {
    local name=$1 start=$SECONDS
    shift
    echo "== $name"
    "$@" || die "phase '$name' failed after $((SECONDS - start)) s"
    PHASES+=("$(printf '%5d s  %s' $((SECONDS - start)) "$name")")
}

# show_phases: prints the time each phase took.
show_phases() {
    echo "== time taken"
    printf '%s\n' "${PHASES[@]}"
}

mkdir -p "$TARGET"
