# publish DIGEST[:OLDER]...: every bundle stands in the cache, whole. Those that do not are read
# from standard input as one packed stream, after "go".

# make PATH: level by level, for a default ACL on the level above defeats the umask.
make() {
  [ -d "$1/" ] && return
  make "${1%/*}" && { mkdir -m 700 "$1" || [ -d "$1/" ]; } && chmod g-s "$1"
}
if [ "$e" != "$r" ]; then
  w=$(make "$r" 2>&1) || fail "$r" "$w"
  cd -P "$r" && [ -O . ] || quit "unsafe owner $r"
fi

l=
for a do
  d=${a%:*} o=${a#*:}
  f=$d
  if whole $d $d; then
    touch -c $d
    printf "is %s ok\n" $d
    continue
  elif [ -e $d ] || [ -L $d ]; then
    printf "is %s damaged\n" $d
    # What in it is intact need not be sent again.
    [ -d $d ] && [ ! -L $d ] && (cd ./$d && tree | sed -n "s/^[fx] /=&/p" | head -c 200000; echo)
  elif [ $o != $d ] && whole $o $o; then
    printf "is %s older\n" $d
    f=$o
  else
    printf "is %s absent\n" $d
  fi
  l="$l $d:$f"
done
[ "$l" ] || quit
need gzip tar
open
printf "go\n"
w=$( { gzip -dc | (cd ./$s && tar -xof - && cat >/dev/null); } 2>&1 | { head -c 2000; cat >/dev/null; } )

# keep COPY: the files that the list beside the staged bundle names, as they are in another copy.
keep() (
  set --
  while IFS= read -r n; do
    set -- "$@" "$n"
  done <$x.keep
  (cd ./$f && tar -cf - "$@") | (cd ./$x && tar -xof -)
  cd ./$x && touch -t 198001010000 "$@"
) 2>/dev/null

# place: $x gets the name $d. Moving a directory into the cache fails when the name is taken by
# anything but an empty directory, and that is the only commit. Who is late holds the winner to
# the digest. Only one at a time takes a damaged copy out of the way, or a whole one could go.
place() {
  how=new
  for t in 1 2 3; do
    v=$(mv $x . 2>&1) && return
    whole $d $d && how=had && return
    [ -e $d ] || [ -L $d ] || continue
    i=0
    until mkdir -m 700 .stage-$d 2>/dev/null || [ $i -gt 49 ]; do
      sleep .1 2>/dev/null || { sleep 1; i=$((i+9)); }
      i=$((i+1))
    done
    k=.stage-$d
    if whole $d $d; then
      how=had x=
    else
      mv $d $s-$d-$t 2>/dev/null && how=mended
      v=$(mv $x . 2>&1) && x=
    fi
    rmdir $k 2>/dev/null
    k=
    [ "$x" ] || return
  done
  how=refused w="$w $v"
}

for a in $l; do
  d=${a%:*} f=${a#*:}
  x=$s/$d
  how=torn
  if [ -f $s/end ]; then
    [ -f $x.keep ] && keep
    how=bad
    whole $x $d && touch $x && place
  fi
  printf "%s %s\n" $how $d
done
[ "$w" ] && set -f && set -- $w && printf "said %.1500s\n" "$*"
quit
