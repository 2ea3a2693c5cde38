# What a command about the cache begins with. Its words are the cache's place, and what its verb
# takes.
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

need find sort sed id
u=$(id -u 2>/dev/null) || quit tool id
for h in sha256sum "shasum -a 256" "sha256 -r" "openssl dgst -sha256 -r" ""; do
  command -v ${h%% *} >/dev/null && break
done
[ "$h" ] || quit tool sha256sum

# The cache, or the nearest directory above it that exists, becomes the working directory.
case $r in [!""/]*|*[[:cntrl:]]*) quit home ;; esac
e=$r
until cd -P "$e" 2>/dev/null; do
  e=${e%/*}
  e=${e:-/}
done
case $PWD in *[[:cntrl:]]*) quit home ;; esac

# chain NAME PLACE GROUP: the directories on the way to the cache by its name and by where links
# lead, each as it is found unsafe. A sticky directory lets nobody rename what is not theirs.
chain() (
  a=$1 b=$2 g=$3
  set --
  for x in "$a" "$b"; do
    while :; do
      { [ -e "$x" ] || [ -L "$x" ]; } && set -- "$@" "$x"
      [ "$x" = / ] && break
      x=${x%/*}
      x=${x:-/}
    done
  done
  find "$@" -prune ! -user 0 ! -user $u -exec printf "owner %s\n" {} ";" -o -prune ! -type l "(" -perm -002 -o -perm -020 $g ")" ! -perm -1000 -exec printf "mode %s\n" {} ";"
)
c=$(chain "$r" "$PWD")
# Where each user has a group alone, its right to write gives nothing to anyone else.
[ "$c" ] && [ "$(id -gn)" = "$(id -un)" ] && c=$(chain "$r" "$PWD" "! -group $(id -g)")
[ "$c" ] && quit "unsafe ${c%%"$nl"*}"
if [ "$e" != "$r" ] && { [ -e "$r" ] || [ -L "$r" ]; }; then
  # It cannot be entered, or another has made it meanwhile, below what was found safe.
  cd -P "$r" 2>/dev/null || fail "$r" Not a directory that can be entered
  e=$r
fi
[ "$e" != "$r" ] || [ -O . ] || quit "unsafe owner $r"
printf "root %s\n" "$r"

# tree: the manifest of the copy that is the working directory, unsorted. Whatever a bundle cannot
# hold becomes a line that no manifest has. An empty line divides files from executable ones.
tree() {
  {
    find . -name . -perm 700 -user $u -o -name "*$nl*" -print -o -type d -perm 700 -user $u -exec printf "d %s\n" {} + -o -type f -user $u -perm 600 -exec $h {} + -o -type f -user $u -perm 700 -o -print
    echo
    find . -type f -perm 700 -exec $h {} +
  } | sed -e "/^[0-9a-f]\{64\}/s/ [ *]*/  /" -e "/^$/,\$ s/^/x /" -e "/^x $/d" -e "/^[0-9a-f]\{64\}/s/^/f /"
} 2>/dev/null

# whole DIRECTORY DIGEST
whole() {
  [ -d "$1" ] && [ ! -L "$1" ] || return 1
  m=$(cd "./$1" && tree | sort | $h)
  [ "${m%% *}" = "$2" ]
}

# top DIRECTORY: n becomes the name of what it holds.
top() {
  for n in "$1"/* "$1"/.[!"."]* "$1"/..?*; do
    [ -e "$n" ] || [ -L "$n" ] && break
    n=
  done
  n=${n##*/}
  flat
}

# flat: n becomes one line. A name holds no slash, so a slash can stand for its line ends.
flat() {
  case $n in *"$nl"*) n=$(printf %s "$n" | tr "\n" /) ;; esac
}
