# Sourced by the commands in Tools, not run by itself: makes sure that what a build needs is there.
# Installs with apt what is missing on Debian and its relatives; elsewhere says what is needed.

# What each package is for stands beside it, so that one can be taken out again.
holdfast_packages=(
  liblmdb-dev               # LMDB: the store
  libmicrohttpd-dev         # HubServer: the HTTP listener
  libcurl4-openssl-dev      # HubClient: the HTTP transport
  libcjose-dev              # HubServer: tokens
  libjansson-dev            # HubServer: the JSON that libcjose speaks
  libssl-dev                # HubServer: keys
  libsqlite3-dev            # an example app that keeps its rows in a file of its own; bench
  pkg-config                # the build finds the libraries with it
  iso-codes                 # the records of the quickstart
  gnuplot-nox               # bench: the chart
  lmdb-utils                # mdb_stat and mdb_copy, to look at a store from outside
  python3-venv              # a place for what holdfast_setup_python installs
)
holdfast_homebrew="bash lmdb libmicrohttpd curl cjose jansson openssl@3 sqlite pkgconf iso-codes gnuplot"

# One sentence on standard error, then the end with an exit code of sysexits.h.
holdfast_fail() {
  echo "$(basename "$0"): $2" >&2
  exit "$1"
}

holdfast_setup() {
  command -v swift >/dev/null ||
    holdfast_fail 69 "Swift 6.2 or newer is needed; install it from https://www.swift.org/install"
  if [ "$(uname)" = Darwin ]; then
    echo "setup: on macOS these Homebrew packages are needed: $holdfast_homebrew" >&2
  elif command -v apt-get >/dev/null; then
    holdfast_install_missing
  else
    echo "setup: there is no apt here; what these Debian packages hold is needed:" \
      "${holdfast_packages[*]}" >&2
  fi
}

holdfast_install_missing() {
  local package missing=()
  for package in "${holdfast_packages[@]}"; do
    holdfast_is_installed "$package" || missing+=("$package")
  done
  [ ${#missing[@]} -gt 0 ] || return 0
  echo "setup: installing ${missing[*]}" >&2
  holdfast_apt update || holdfast_fail 69 "apt-get update failed; is there a network?"
  holdfast_apt install --yes --no-install-recommends "${missing[@]}" ||
    holdfast_fail 69 "apt-get could not install ${missing[*]}"
}

# PyPI's lmdb, with an LMDB of its own, which reads and writes beside the module in its tests.
holdfast_python=.build/python
holdfast_python_lmdb=3.0.0

# Installs it below the current directory, for Tools/test only; nothing that is shipped needs it.
holdfast_setup_python() {
  "$holdfast_python/bin/python" -c \
    "import lmdb; assert lmdb.__version__ == '$holdfast_python_lmdb'" 2>/dev/null && return 0
  echo "setup: installing PyPI's lmdb $holdfast_python_lmdb into $holdfast_python" >&2
  rm -rf "$holdfast_python"
  python3 -m venv "$holdfast_python" ||
    holdfast_fail 69 "python3 could not make $holdfast_python; is python3-venv installed?"
  "$holdfast_python/bin/pip" install --quiet --disable-pip-version-check \
    --only-binary lmdb "lmdb==$holdfast_python_lmdb" ||
    holdfast_fail 69 "pip could not install lmdb $holdfast_python_lmdb; is there a network?"
}

holdfast_is_installed() {
  [ "$(dpkg-query --show --showformat='${db:Status-Status}' "$1" 2>/dev/null)" = installed ]
}

# Errors are shown; the rest of what apt says is of no use to who wants to run a test. A lock that
# another apt holds, as on a machine that has just started, is waited for.
holdfast_apt() {
  local as_root=()
  if [ "$(id -u)" -ne 0 ]; then
    command -v sudo >/dev/null ||
      holdfast_fail 77 "packages are missing: run this as root once, or install sudo"
    as_root=(sudo)
    # Nobody is there to type a password.
    [ -t 0 ] || as_root+=(--non-interactive)
  fi
  "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive \
    apt-get -qq -o DPkg::Lock::Timeout=300 "$@" >/dev/null
}
