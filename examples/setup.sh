# Sourced by examples/run.sh and tests/run.sh, from the top of the repository.
#
#   set_up NAME EXTRAS PACKAGE...   packages of Debian that are missing, .venv, mcugen with the pip extras in it, and its
#                                   bin folder on the PATH. What is there already is left alone.
#
# With a virtual environment active that has mcugen, that one is used as it is. apt runs by sudo where it must.
# SPDX-License-Identifier: MIT

set_up() {
    name=$1 extras=$2
    shift 2
    if [ -n "${VIRTUAL_ENV:-}" ] && [ -x "$VIRTUAL_ENV/bin/mcugen" ]; then
        PATH="$VIRTUAL_ENV/bin:$PATH"
        return 0
    fi
    install_packages python3-venv libgomp1 gcc libc6-dev "$@"
    # A stamp per purpose, so that a second run needs no network.
    stamp=.venv/.mcugen-$name want=$(cksum pyproject.toml)
    if [ "$(cat "$stamp" 2>/dev/null)" != "$want" ]; then
        python3 -c 'import sys; sys.exit(sys.version_info < (3, 11))' || {
            echo "Python 3.11 or later is needed; python3 here is $(python3 --version)" >&2
            return 1
        }
        echo "-- Python packages into .venv" >&2
        [ -x .venv/bin/pip ] || python3 -m venv --clear .venv
        .venv/bin/python -m pip install --quiet --disable-pip-version-check -e ".$extras"
        echo "$want" >"$stamp"
    fi
    PATH="$PWD/.venv/bin:$PATH"
}

# Packages of Debian that are not there yet; elsewhere it says what is needed and goes on.
install_packages() {
    if ! command -v dpkg-query >/dev/null || ! command -v apt-get >/dev/null; then
        echo "-- no apt here; needed are: $*" >&2
        return 0
    fi
    missing=
    for package in "$@"; do
        case $(dpkg-query -W -f '${Status}' "$package" 2>/dev/null) in
            *' installed') ;;
            *) missing="$missing $package" ;;
        esac
    done
    [ -n "$missing" ] || return 0
    echo "-- packages of Debian:$missing" >&2
    sudo=
    [ "$(id -u)" = 0 ] || sudo=sudo
    # shellcheck disable=SC2086 # a list of words
    $sudo apt-get -qq update && $sudo env DEBIAN_FRONTEND=noninteractive \
        apt-get -qq install --no-install-recommends -o Dpkg::Use-Pty=0 $missing >/dev/null
}
