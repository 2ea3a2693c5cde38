# collections ALL DIRECTORY [KIND LIMIT PATH]...: what discovery asks of a machine. The answer is in
# lines, see collections_reply.go, and packed in one stream. ALL is 1 to send files whole. DIRECTORY is
# ~ for the home directory.
x=$1
bs=$(printf "\134")
sq=$(printf "\047")
del=$(printf "\177")
bom=$(printf "\357\273\277")
ws=$IFS
o=

# text WORD: t becomes what a word of the command stands for, in which .0ooo is a byte and . nothing.
text() {
  t=
  [ "$1" = . ] && return
  set -f
  IFS=.
  set -- $1
  IFS=$bs
  t=$(printf "%b_" "$*")
  t=${t%_}
  IFS=$ws
  set +f
}

# out prints the lines that are gathered in o. Where printf is a program, each costs a process.
out() {
  [ "$o" ] && printf %s "$o"
  o=
}

# say WORD TEXT: a line, or for text of more than one the word alone and then the text in hexadecimal.
say() {
  case $2 in
    *"$nl"*)
      o="$o$1$nl"
      out
      printf %s "$2" | od -An -v -tx1
      ;;
    *) o="$o$1 $2$nl" ;;
  esac
}

# low NAME: it sorts before a dot.
low() {
  case $1 in
    "$del"*) return 1 ;;
    [[:cntrl:]]*|" "*|"!"*|\"*|"#"*|\$*|%*|"&"*|"$sq"*|"("*|")"*|"*"*|+*|,*|-*) ;;
    *) return 1 ;;
  esac
}

# rank: in which of five passes the name n comes. The shell sorts names with a dot apart from others.
rank() {
  case $n in
    ..*) k=3 ;;
    .*) low "${n#.}" && k=2 || k=4 ;;
    *) low "$n" && k=1 || k=5 ;;
  esac
}

# follow FILE: prints its real path and a mark, for a name may end in a line end.
follow() (
  f=$1 j=0
  while [ $j -lt 41 ]; do
    case $f in /*|./*) ;; *) f=./$f ;; esac
    cd -P "${f%/*}/" || exit
    f=./${f##*/}
    if [ -d "$f" ] && cd -P "$f"; then
      printf "%s_" "$PWD"
      exit
    elif [ ! -L "$f" ]; then
      printf "%s_" "${PWD%/}/${f#./}"
      exit
    fi
    f=$(readlink "$f" && echo x) || exit
    f=${f%?x} j=$((j+1))
  done
) 2>/dev/null

# hidden PATH: whether it is there cannot be told.
hidden() {
  f=$1
  until [ -e "${f:-/}" ]; do
    case $f in /*) f=${f%/*} ;; *) return 1 ;; esac
  done
  f=${f:-/}
  [ -d "$f" ] && [ ! -x "$f" ]
}

# bad CODE [SIZE]
bad() {
  o="${o}bad $*$nl"
  return 1
}

# visit: tells of the entry n, unless it is no skill, and succeeds when its file is to be read.
visit() {
  if [ ! -d "./$n" ]; then
    [ -L "./$n" ] && [ ! -e "./$n" ] || return
    say e "$n"
    say link ""
    bad link-dangles
    return
  fi
  f=./$n/SKILL.md u=./$n/skill.md y=
  if [ -e "$f" ] || [ -L "$f" ]; then
    # Where a file system takes both for the same name, the directory tells which one it is.
    if [ -e "$u" ] && [ -r "./$n" ]; then
      for u in "./$n"/[S]KILL.md; do
        [ "$u" = "$f" ] || y=misnamed
      done
    fi
  elif [ ! -x "./$n" ]; then
    y=unreadable
  elif [ -e "$u" ] || [ -L "$u" ]; then
    y=misnamed
  else
    return 1
  fi
  say e "$n"
  r=${c%/}/$n
  if [ -L "./$n" ]; then
    r=
    if cd -P "./$n" 2>/dev/null; then
      r=$PWD
      cd -P "$c" || exit
    fi
    say link "$r"
  fi
  if [ "$y" ]; then
    bad $y
    return
  fi
  if [ -L "$f" ]; then
    o="${o}file$nl"
    [ -e "$f" ] || { bad link-dangles; return; }
    case $(follow "$f") in "${r%/}"/*|"${r}_") ;; *) bad link-escapes $(size "$f"); return ;; esac
  fi
  [ -f "$f" ] || { bad special-file; return; }
  [ -r "$f" ] || { bad unreadable $(size "$f"); return; }
  o="${o}f$nl"
}

# size FILE
size() {
  set -f
  set -- $(ls -ldnL "$1" 2>/dev/null)
  set +f
  case ${5-} in ""|*[!""0-9]*) echo - ;; *) echo $5 ;; esac
}

# files FILE...: what visit wants to have read. An awk may not see what follows a NUL in a line, so
# files with one are sent whole, and so are those whose names it cannot be told.
files() {
  z=$(stat -L -c %s "$@" 2>/dev/null || stat -L -f %z "$@" 2>/dev/null)
  j=0
  for s in $z; do
    j=$((j+1))
  done
  if [ $j != $# ]; then
    z=
    for f do
      z="$z $(size "$f")"
    done
  fi
  w=$x j=$#
  case $c$* in *"$nl"*) w=1 ;; esac
  for s in $z; do
    f=$1
    shift
    small $s && set -- "$@" "$f" || set -- "$@" /dev/null
  done
  [ $w = 1 ] || [ $(cat "$@" 2>/dev/null | tr -cd "\000" | wc -c) = 0 ] || w=1
  if [ $w = 0 ]; then
    out
    printf "s %s\n" $z
    return
  fi
  for s in $z; do
    f=$1
    shift
    w=$x
    case $c$f in *"$nl"*) w=1 ;; esac
    [ $w = 1 ] || [ $(tr -cd "\000" <"$f" | wc -c) = 0 ] || w=1
    if [ $w = 0 ] || [ "$f" = /dev/null ]; then
      o="${o}s $s$nl"
    elif [ $b -gt 16777216 ]; then
      o="${o}x${nl}full$nl"
    else
      b=$((b+s))
      o="${o}x$nl"
      out
      od -An -v -tx1 -N 65537 "$f" 2>/dev/null
    fi
  done
}

# small SIZE: a file of that size is read. Some shells count with 32 bits.
small() {
  case $1 in -|??????*) return 1 ;; esac
  [ $1 -le 65536 ]
}

# look DEPTH PATH: the collection at a path.
look() {
  if [ ! -e "$2" ] && [ ! -L "$2" ]; then
    hidden "$2" || return
    o="${o}in $i $1${nl}shut unreadable$nl"
    return
  fi
  o="${o}in $i $1$nl"
  if ! cd -P "$2" 2>/dev/null; then
    [ -d "$2" ] && y=unreadable || y=not-a-directory
    c=
    [ -e "$2" ] && c=$(follow "$2")
    c=${c%_}
    say real "${c:-$2}"
    o="${o}shut $y$nl"
    return
  fi
  c=$PWD
  say real "$c"
  [ -r . ] || { o="${o}shut unreadable$nl"; return; }
  set -- * .[!"."]* ..?*
  p=0
  [ $# -gt $m ] && p="1 2 3 4 5"
  set --
  a=0
  for p in $p; do
    for n in * .[!"."]* ..?*; do
      [ $p = 0 ] || { rank; [ $k = $p ]; } || continue
      [ -e "./$n" ] || [ -L "./$n" ] || continue
      a=$((a+1))
      if [ $a -gt $m ]; then
        o="${o}more$nl"
        break 2
      fi
      visit && set -- "$@" "./$n/SKILL.md"
      [ $# -gt 63 ] || continue
      files "$@"
      set --
    done
  done
  [ $# = 0 ] || files "$@"
}

# marked: q is the root of a repository.
marked() {
  for f in "$q/.git" "$q/.jj"; do
    [ -d "$f" ] || [ -f "$f" ] || [ -L "$f" ] && return
  done
  return 1
}

# place: where the command asks about, and the repository around it.
place() {
  cd -P . 2>/dev/null
  case ${HOME-} in /*) h=$HOME ;; *) h=. ;; esac
  cd -P "$h" 2>/dev/null && h=$PWD
  say home "$h"
  [ "$d" ] || return
  [ "$d" = "~" ] && d=$h
  if cd -P "$d" 2>/dev/null; then
    d=$PWD
  else
    if [ -d "$d" ] || hidden "$d"; then y=unreadable; else y=no-directory; fi
    o="${o}nodir $y$nl"
    d=
    return
  fi
  say dir "$d"
  q=${d%/} j=0
  until marked; do
    j=$((j+1))
    [ "$q" ] && [ $j -le 64 ] || { q=$d; return; }
    q=${q%/*}
  done
  q=${q:-/}
  say repo "$q"
}

main() {
  for t in od cat tr wc; do
    command -v $t >/dev/null || { echo tool $t; return; }
  done
  text "$2"
  d=$t q= b=0 i=0
  place
  shift 2
  while [ $# -gt 0 ]; do
    m=$2
    text "$3"
    v=$t
    case $1 in
      a) look 0 "$v" ;;
      h) look 0 "${h%/}/$v" ;;
      d) [ "$d" ] && look 0 "${d%/}/$v" ;;
      w) g=$d l=0
        while [ "$g" ]; do
          look $l "${g%/}/$v"
          [ "$g" = "$q" ] && break
          g=${g%/*} l=$((l+1))
          g=${g:-/}
        done ;;
    esac
    i=$((i+1))
    shift 3
  done
  o="${o}done$nl"
  out
}

# heads puts below each file to be read its lines through the end of its frontmatter.
heads() {
  [ $x = 0 ] || { cat; return; }
  awk -v b="$bom" "function head(f, l, i) {
    if (t > 8388608) {
      print \"full\"
      return
    }
    while ((getline l < f) > 0) {
      print \"|\" l
      t += length(l) + 1
      i++
      if (i == 1 && index(l, b) == 1) l = substr(l, length(b) + 1)
      if (l ~ /^---[ \t\r]*\$/) { if (i > 1) break; } else if (i == 1) break
    }
    close(f)
  }
  { print }
  /^real / { c = substr(\$0, 6) }
  /^e / { n = substr(\$0, 3) }
  /^f\$/ { q[++z] = c \"/\" n \"/SKILL.md\" }
  /^s / || /^x\$/ { f = q[++y]; delete q[y] }
  /^s [0-9]/ { if (substr(\$0, 3) + 0 <= 65536) head(f) }"
}

pack() {
  if command -v gzip >/dev/null; then gzip -c; else cat; fi
}

command -v awk >/dev/null || x=1
main "$@" | heads | pack
printf "\nend:%s\n" "$N"
