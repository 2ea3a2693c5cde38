# probe: whether the account can write where the cache is, or is to be.
if [ -w . ] && [ -x . ]; then
  printf "writable\n"
else
  printf "readonly %s\n" "$PWD"
fi
quit
