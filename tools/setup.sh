#!/bin/sh
# Makes .venv and installs the course there:  sh tools/setup.sh EXTRAS
# EXTRAS is `instructor` (make lab, make demo) or `instructor,dev` (make test).
# Done before and nothing changed since: returns at once.
set -eu
cd "$(dirname "$0")/.."
extras=$1
floor=$(sed -n 's/^requires-python = ">=\(.*\)"$/\1/p' pyproject.toml)

here=$(pwd -P)

# Everything that decides what is installed.
fingerprint=$({ echo "$here"; cat pyproject.toml constraints.txt \
    tools/setup.sh; } | cksum)

fail() {
    echo "$1" >&2
    exit 1
}

new_enough() {
    "$1" -c "import sys
floor = tuple(map(int, '$floor'.split('.')))
sys.exit(sys.version_info[:2] < floor)" 2>/dev/null
}

# Prints the command that installs the packages: $1 for apt, $2 for dnf, $3 for
# Homebrew.
install_command() {
    if [ "$(id -u)" = 0 ]; then sudo=""; else sudo="sudo "; fi
    if command -v apt-get >/dev/null; then
        echo "${sudo}apt-get install $1"
    elif command -v dnf >/dev/null; then
        echo "${sudo}dnf install $2"
    elif command -v brew >/dev/null; then
        echo "brew install $3"
    else
        echo "the installer from https://www.python.org/downloads/"
    fi
}

find_python() {
    for python in ${PYTHON:-python3 python3.14 python3.13 python3.12 \
        python3.11}; do
        if new_enough "$python"; then
            return
        fi
    done
    how=$(install_command "python3 python3-venv" python3.12 python@3.13)
    fail "The course needs Python $floor or newer and found\
 $("${PYTHON:-python3}" --version 2>&1 | sed 's/.*not found.*/none/'):\
 install one with: $how"
}

# pip writes INSTALLER last. A package without it was cut short, yet pip would
# take it for installed.
half_installed() {
    for info in .venv/lib/python3.*/site-packages/*.dist-info; do
        if [ -d "$info" ] && [ ! -e "$info/INSTALLER" ]; then
            return 0
        fi
    done
    return 1
}

# The programs in .venv/bin name their folder, so a moved .venv is of no use.
made_here() {
    case $(sed -n 's/^command = //p' .venv/pyvenv.cfg 2>/dev/null) in
    *" $here/.venv") return 0 ;;
    *) return 1 ;;
    esac
}

if .venv/bin/python -c '' 2>/dev/null; then
    for stamp in ".venv/.installed-$extras" .venv/.installed-instructor,dev; do
        if [ "$(cat "$stamp" 2>/dev/null)" = "$fingerprint" ]; then
            exit 0
        fi
    done
fi

started=$(date +%s)
# A stamp of other requirements must not come true again when a file is changed
# back after an install that did not end. One of the same requirements stays:
# under the same pins, more extras only add packages.
for stamp in .venv/.installed-*; do
    if [ -e "$stamp" ] && [ "$(cat "$stamp")" != "$fingerprint" ]; then
        rm "$stamp"
    fi
done

if ! new_enough .venv/bin/python || ! made_here || half_installed ||
    ! .venv/bin/python -m pip --version >/dev/null 2>&1; then
    find_python
    if ! "$python" -c 'import ensurepip, venv' 2>/dev/null; then
        version=$("$python" -c 'import sys
print("%d.%d" % sys.version_info[:2])')
        fail "$python has no venv module with pip: install it with:\
 $(install_command "python$version-venv" python3-pip "python@$version")"
    fi
    echo "Making .venv with $("$python" --version)"
    # An old one is moved, not cleared where it is: its modules may still be
    # compiled (see the end), and a folder that is written to is never empty.
    rm -rf .venv-gone
    if [ -e .venv ] || [ -L .venv ]; then mv .venv .venv-gone; fi
    "$python" -m venv .venv
    rm -rf .venv-gone
    # Today's pip installs in a third of the time that Python's own takes; where
    # none is to be had, Python's own does.
    .venv/bin/python -m pip install --quiet --disable-pip-version-check \
        --upgrade pip >/dev/null 2>&1 || true
fi

echo "Installing the course and its [$extras] packages into .venv"
log=.venv/install.log
.venv/bin/python -m pip install --no-input --no-compile --progress-bar off \
    --disable-pip-version-check --constraint constraints.txt \
    --editable ".[$extras]" >"$log" 2>&1 &
pip=$!
trap 'kill "$pip" 2>/dev/null; exit 130' INT TERM
# pip's hundreds of lines stay in the log; a terminal sees the latest, in one.
if [ -t 1 ]; then
    while kill -0 "$pip" 2>/dev/null; do
        step=$(sed -n 's/^ *\(Collecting\|Downloading\|Building\|Installing\)\( [^ ]*\).*/\1\2/p' \
            "$log" | tail -n 1 | cut -c 1-60)
        printf '\r\033[K  %s s  %s' "$(($(date +%s) - started))" "$step"
        sleep 1
    done
    printf '\r\033[K'
fi
if ! wait "$pip"; then
    tail -n 15 "$log" >&2
    fail "The installation did not finish; pip's words above say why, and all\
 of them are in $log. Run the same command again: it goes on from there."
fi
echo "$fingerprint" >".venv/.installed-$extras"
# pip would compile 12,000 modules one after the other, half of its time. All
# cores do it, while the course is already in use: what is imported before its
# turn is compiled then.
nice .venv/bin/python -m compileall -q -j 0 .venv/lib >/dev/null 2>&1 &
echo "Installed in $(($(date +%s) - started)) s (pip's words: $log)"
