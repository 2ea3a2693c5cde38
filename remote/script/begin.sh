# What every command begins with. Its words are the nonce, the cache's place, and what its verb
# takes. A single quote, a backslash before a backslash, and an exclamation mark before a word are
# not allowed anywhere: see script.go. A relative path that is entered begins with ./, so that CDPATH
# is not searched.

# Neither the account's environment nor its shell's options may change what follows.
set +efuxC
umask 077
LC_ALL=C TZ=UTC0 COPYFILE_DISABLE=1
export LC_ALL TZ COPYFILE_DISABLE
unset TAR_OPTIONS TAR_WRITER_OPTIONS GZIP POSIXLY_CORRECT
unset -f command printf cd test read id find sort sed head tr ls stat date cat touch chmod mkdir rmdir mv rm sleep tar gzip 2>/dev/null
PATH=${PATH:-/bin}:/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin

N=$1
case ${XDG_CACHE_HOME-} in /*) r=$XDG_CACHE_HOME ;; *) r=${HOME:-.}/.cache ;; esac
r=${r%/}/$2
shift 2
nl=$(printf "\nx")
nl=${nl%x}
printf "\nbegin:%s\n" "$N"

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
