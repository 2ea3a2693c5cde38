# list [check]: everything in the cache, with the time by this machine.
[ "$e" = "$r" ] || quit none
need date ls
printf "now %s\n" "$(date +%s)"
for d in * .[!"."]* ..?*; do
  [ -e "$d" ] || [ -L "$d" ] || continue
  case $d in .tmp-*|.stage-*|.trash-*) continue ;; esac
  case ${#d}:$d in
    *:*[!""0-9a-f]*) ;;
    64:*)
      c=- t=$(used $d)
      [ "${1-}" ] && c=damaged && whole $d $d && c=ok
      top $d
      printf "copy %s %s %s %s %s\n" $d $c $t "$(count)" "$n"
      continue
      ;;
  esac
  n=$d
  flat
  printf "other %s\n" "$n"
done
quit
