#!/bin/sh
# Makes deploy/secrets: a file for each secret of compose.yaml, which belongs to the one user who reads it in its container.
# Once, as root: sudo deploy/make-secrets.sh
set -eu
cd "$(dirname "$0")"
if [ -e secrets ]; then
  echo "deploy/secrets is there, and stays as it is" >&2
  exit 1
fi
umask 077
rm -rf secrets.new
mkdir secrets.new

random() {
  openssl rand -hex 32
}
# put OWNER NAME TEXT; no text is an argument of a process: printf is one of the shell.
put() {
  printf '%s\n' "$3" > "secrets.new/$2"
  chown "$1" "secrets.new/$2"
  chmod 400 "secrets.new/$2"
}

service=10001 postgres=0 redis=999 coturn=65534
jwt=$(random)
key=$(random)
database=$(random)
sessions=$(random)
turn=$(random)
put $service jwt-secrets "k1:$jwt"
put $service bootstrap-keys "shop-1:$key:shop"
put $service turn-secret "$turn"
# What the two say to their clients stays in the network of compose.yaml.
put $service database-url "postgres://ringwire:$database@postgres:5432/ringwire?sslmode=disable"
put $service redis-url "redis://:$sessions@redis:6379/0"
put $postgres postgres-password "$database"
put $redis redis.conf "requirepass $sessions"
put $coturn turnserver.conf "static-auth-secret=$turn"
mv secrets.new secrets
