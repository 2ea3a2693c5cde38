# What publish and prune begin with: a place of their own in the cache, and its end.
s=.tmp-$N k=
cleanup() {
  set +f
  [ "$k" ] && rmdir $k
  rm -rf $s $s-* && return
  # A directory that its owner may not write to keeps what is in it.
  find $s $s-* -type d -exec chmod 700 {} ";"
  rm -rf $s $s-*
} 2>/dev/null
trap cleanup 0
trap "exit 1" 1 2 13 15

# open: the cache is private, what others left unfinished long ago is gone, and there is a stage.
# Only what is over a day old by this machine has no owner any more.
open() {
  for n in .tmp-* .stage-* .trash-*; do
    [ -d "$n" ] || continue
    find .tmp-* .stage-* .trash-* -prune -mtime +1 -exec rm -rf {} + 2>/dev/null
    break
  done
  w=$( { chmod u+rwx,go-rwx,g-s . && mkdir -m 700 $s; } 2>&1 ) || fail "$r" "$w"
}
