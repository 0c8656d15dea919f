# Sourced by Tools/quickstart, not run by itself: runs a program so that all that it started can be
# stopped, also what outlived it, and so that an interrupt is acted on at once.
#
# Each program gets a session of its own. Process groups would not do: a program may give each of
# its children one. Nothing is found by its name, so nothing else is ever stopped.

# Empty; "starting" for the moment in which its ID is not known yet; or the ID.
session=
interrupted=

# To be called by traps for signals. `exit` then runs the trap for EXIT.
end_with() {
  interrupted=$1
  [ "$session" = starting ] || exit "$1"
}

# Runs a program and returns its exit status; whatever it left behind is stopped.
run_in_session() {
  local status=0
  session=starting
  if command -v setsid >/dev/null; then
    # A job in the background leads no group, so setsid(1) doesn't fork but turns into the program:
    # its process ID is the session's.
    setsid "$@" &
  else
    # macOS: the program alone can be told to stop, and has to stop what it started.
    "$@" &
  fi
  session=$!
  [ -z "$interrupted" ] || exit "$interrupted"
  wait "$session" 2>/dev/null || status=$?
  stop_session
  return "$status"
}

# Stops every process of the session: asks, waits up to ten seconds, then insists.
stop_session() {
  [ -n "$session" ] || return 0
  local attempt processes asked_all=
  # First the program alone: it knows best in which order to stop what it started.
  kill -TERM "$session" 2>/dev/null || true
  for attempt in {1..50}; do
    processes=$(session_processes)
    [ -n "$processes" ] || break
    if [ -z "$asked_all" ] &&
      { [ "$attempt" -gt 25 ] || ! grep -qx "$session" <<<"$processes"; }; then
      signal_session TERM
      asked_all=yes
    fi
    sleep 0.2
  done
  signal_session KILL
  # Without this the shell would report the job as terminated.
  wait "$session" 2>/dev/null || true
  session=
}

signal_session() {
  local process
  for process in $(session_processes); do kill "-$1" "$process" 2>/dev/null || true; done
}

# The IDs of the living processes of the session; see proc(5), stat: after the name in parentheses,
# which may hold anything, come the state, the parent, the group and the session.
session_processes() {
  local file line fields
  if [ ! -d /proc/self ]; then
    ps -p "$session" -o pid= | tr -d ' '
    return 0
  fi
  for file in /proc/[0-9]*/stat; do
    # A process may end between the listing and the reading.
    { read -r line <"$file"; } 2>/dev/null || continue
    read -r -a fields <<<"${line##*) }"
    if [ "${fields[3]}" = "$session" ] && [ "${fields[0]}" != Z ]; then echo "${line%% *}"; fi
  done
}
