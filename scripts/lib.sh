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

# phase NAME COMMAND...: runs a command and remembers how it went and how long it took. A
# failed phase does not keep the next ones from running: `end_phases` reports it.
PHASES=()
FAILED=()
phase() {
    local name=$1 start=$SECONDS result=passed
    shift
    echo "== $name"
    if ! "$@"; then
        result=FAILED
        FAILED+=("$name")
        echo "== $name: FAILED" >&2
    fi
    PHASES+=("$(printf '%5d s  %-6s  %s' $((SECONDS - start)) $result "$name")")
}

# needed NAME COMMAND...: a phase without which the next ones make no sense.
needed() {
    phase "$@"
    [ ${#FAILED[@]} -eq 0 ] || end_phases
}

# end_phases: prints how each phase went; exits with 1 if one failed.
end_phases() {
    echo "== phases"
    printf '%s\n' "${PHASES[@]}"
    [ ${#FAILED[@]} -eq 0 ] || die "failed: $(printf '%s; ' "${FAILED[@]}")see the lines above"
    exit 0
}

mkdir -p "$TARGET"
