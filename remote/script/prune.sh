# prune DIGEST:USED...: takes copies away whose last use is still the one given, - for any. A copy
# loses its name by one rename, so that nobody reads half of one.
[ "$e" = "$r" ] || quit none
open
for a do
  d=${a%:*} t=${a#*:}
  if [ ! -e $d ] && [ ! -L $d ]; then
    printf "gone %s\n" $d
  elif [ $t != - ] && [ "$(used $d)" != $t ]; then
    printf "used %s\n" $d
  elif w=$(mv $d $s-$d 2>&1); then
    printf "removed %s\n" $d
  else
    n=$w
    flat
    printf "kept %s %.300s\n" $d "$n"
  fi
done
quit
