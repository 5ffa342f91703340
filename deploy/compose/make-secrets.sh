#!/bin/sh
# Makes the secrets that compose.yaml names, once. The folder keeps other users out; the files themselves can be read,
# because the processes in the containers are users of their own.
set -eu
cd "$(dirname "$0")"
mkdir -p secrets
chmod 0700 secrets
umask 022
make() {
  [ -s "secrets/$1" ] || printf '%s' "$2" > "secrets/$1"
}
random() {
  od -An -N32 -tx1 /dev/urandom | tr -d ' \n'
}
make root-key "$(random)"
make database-password "$(random)"
make database-url "postgres://latchkey:$(cat secrets/database-password)@postgres:5432/latchkey"
