# Sourced by Tools/test, not run by itself: the rules of this repository that no compiler checks.

# The arrows: which modules of the package a folder may import, and which of the system's.
# A new folder needs a row here; a new arrow is a decision, not a side effect of an import.
tidy_system="Foundation Synchronization Dispatch CDispatch Glibc Darwin"
tidy_arrows="
Sources/LMDB          | CLMDB                              | $tidy_system
Sources/HubProtocol   |                                    | Foundation
Sources/ProfileStore  | LMDB HubProtocol                   | $tidy_system
Sources/ProfileSync   | ProfileStore HubProtocol           | $tidy_system
Sources/HubClient     | ProfileSync ProfileStore HubProtocol CCurl | $tidy_system
Sources/Holdfast      | LMDB HubProtocol ProfileStore ProfileSync HubClient | $tidy_system
Sources/HubRules      | HubProtocol                        | Foundation Synchronization
Sources/HubServer     | HubRules LMDB HubProtocol CMicroHTTPD CJOSE | $tidy_system
Sources/HoldfastTesting | HubRules HubProtocol HubClient ProfileStore ProfileSync | Foundation Synchronization
Tools/Shared          |                                    | $tidy_system
Tools/hubd            | HubServer ToolSupport              | $tidy_system
Tools/profilectl      | ProfileStore LMDB HubProtocol ToolSupport | $tidy_system
Tools/Measuring       | ToolSupport                        | $tidy_system
Tools/benchmark       | LMDB HubProtocol ProfileStore ProfileSync HubClient CBench Measuring ToolSupport | $tidy_system
Tools/Simulation      | HoldfastTesting ProfileSync ProfileStore HubProtocol LMDB | $tidy_system
Tools/simulator       | Simulation CMachine                | $tidy_system
Tools/story           | Holdfast HubProtocol ToolSupport   | $tidy_system
"
# C libraries, and the one folder that may import each, tests included.
tidy_c_libraries="CLMDB:LMDB CCurl:HubClient CMicroHTTPD:HubServer CJOSE:HubServer CBench:bench CMachine:simulator"
tidy_file_bytes_max=1048575

# Checks the tree in the current directory. Prints each finding with its remedy on standard error
# and returns 1 if there is any.
tidy() {
  local findings
  findings=$(
    tidy_sizes
    tidy_words
    tidy_imports
    tidy_c_imports
    tidy_mutants
  )
  [ -n "$findings" ] || return 0
  echo "$findings" >&2
  return 1
}

# The changes of Tools/mutate are made to the source as it is.
tidy_mutants() {
  local file
  for file in Tests/Mutants/*.patch; do
    [ -f "$file" ] || continue
    git apply --check "$file" 2>/dev/null ||
      echo "$file: does not fit the source any more; make the same change to what stands there now"
  done
}

# Every file that is or would be committed, each ended by NUL. A copy without git has no others.
tidy_files() {
  git ls-files -z --cached --others --exclude-standard 2>/dev/null ||
    find . -path ./.git -prune -o -path ./.build -prune -o -type f -print0
}

tidy_sizes() {
  tidy_files | xargs -0 -r sh -c '
    limit=$1; shift
    for file; do
      [ -f "$file" ] && [ "$(wc -c <"$file")" -gt "$limit" ] &&
        echo "$file: 1 MiB or more; keep large data out of the repository"
    done; true' sh "$tidy_file_bytes_max"
}

tidy_words() {
  # In two parts, so that this line is no finding itself.
  tidy_files | xargs -0 -r grep -sIHnwE 'TO''DO|FIX''ME' |
    sed 's/$/ -- do it now, or file an issue and name what is missing in the text/'
}

# path:module of each import below a folder, whatever stands before the word "import".
tidy_imports_of() {
  find "$1" -name '*.swift' -print0 2>/dev/null |
    xargs -0 -r grep -HE '^[[:space:]]*(@[A-Za-z_()]+[[:space:]]+)*([a-z]+[[:space:]]+)?import[[:space:]]' |
    sed -E 's/^([^:]+):.*import[[:space:]]+((typealias|struct|class|enum|protocol|let|var|func)[[:space:]]+)?([A-Za-z_0-9]+).*/\1:\4/'
}

tidy_imports() {
  local folder row allowed import
  for folder in Sources/* Tools/*; do
    [ -d "$folder" ] && [ -n "$(find "$folder" -name '*.swift' -print -quit)" ] || continue
    row=$(grep -E "^$folder +\|" <<<"$tidy_arrows") || {
      echo "$folder: no row in the arrow table of Tools/Shared/tidy.sh; add one"
      continue
    }
    allowed=" $(cut -d '|' -f 2,3 <<<"$row" | tr '|' ' ') "
    tidy_imports_of "$folder" | while IFS= read -r import; do
      case "$allowed" in
      *" ${import##*:} "*) ;;
      *)
        echo "${import%:*}: imports ${import##*:}, which the arrow table in" \
          "Tools/Shared/tidy.sh does not allow for $folder"
        ;;
      esac
    done
  done
}

tidy_c_imports() {
  local pair import
  tidy_imports_of Tests | while IFS= read -r import; do
    for pair in $tidy_c_libraries; do
      [ "${import##*:}" != "${pair%%:*}" ] ||
        echo "${import%:*}: imports ${pair%%:*}; only the module ${pair##*:} may"
    done
  done
}
