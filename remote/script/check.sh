# check DIGEST...: what stands under each. A copy that is whole is in use from now on.
[ "$e" = "$r" ] || quit none
for d do
  if whole $d $d; then
    touch -c $d
    top $d
    printf "is %s ok %s\n" $d "$n"
  elif [ -e $d ] || [ -L $d ]; then
    top $d
    printf "is %s damaged %s\n" $d "$n"
  else
    printf "is %s absent\n" $d
  fi
done
quit
