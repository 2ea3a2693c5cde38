# What a command about the cache begins with. Its first word is the cache's place.
case ${XDG_CACHE_HOME-} in /*) r=$XDG_CACHE_HOME ;; *) r=${HOME:-.}/.cache ;; esac
r=${r%/}/$1
shift

# quit WORDS: the last line of the answer.
quit() {
  printf "%s\nend:%s\n" "$*" "$N"
  exit 0
}

# fail PATH WORDS: a step that failed, in the words of the program that failed.
fail() {
  printf "fail %s\n" "$1"
  shift
  set -f
  set -- $*
  printf "said %.1500s\n" "$*"
  quit
}

# need PROGRAMS
need() {
  for t do
    command -v $t >/dev/null || quit tool $t
  done
}

# flat: n becomes one line. A name holds no slash, so a slash can stand for its line ends.
flat() {
  case $n in *"$nl"*) n=$(printf %s "$n" | tr "\n" /) ;; esac
}
