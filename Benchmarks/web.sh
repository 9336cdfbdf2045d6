#!/bin/sh
# Runs a command in the current network namespace, with nginx at 127.0.0.1:80 and Floors/server at 127.0.0.1:81. Both
# servers end with the command.
#
# Usage, in a separate network namespace: web.sh NGINX FLOORS SCRATCH COMMAND...
#     NGINX      the path of nginx
#     FLOORS     the directory of the compiled Floors/server.c and Floors/transfers.c
#     SCRATCH    the directory for the files of nginx
set -e
nginx=$1
floors=$2
web=$3
shift 3
ip link set lo up
ulimit -n "$(ulimit -Hn)"

mkdir -p "$web/files"
truncate -s 1G "$web/files/large"
truncate -s 64M "$web/files/moderate"
[ "$(id -u)" -ne 0 ] || user='user root root;'
cat >"$web/nginx.conf" <<EOF
daemon off; master_process off; pid $web/pid; error_log stderr; $user
events { worker_connections 4096; }
http {
    access_log off; client_body_temp_path $web/body; proxy_temp_path $web/proxy; fastcgi_temp_path $web/fastcgi;
    uwsgi_temp_path $web/uwsgi; scgi_temp_path $web/scgi;
    keepalive_requests 1000000000; keepalive_timeout 1h; sendfile off; open_file_cache max=10;
    server {
        listen 127.0.0.1:80 backlog=4096;
        location / { root $web/files; }
        location = /small {
            default_type application/json;
            return 200 '{"id":7,"name":"netwatch","state":"delivered","attempts":1,"at":"2025-06-01T12:00:00Z"}';
        }
    }
}
EOF
"$nginx" -e stderr -p "$web" -c "$web/nginx.conf" &
servers=$!
"$floors/server" 81 &
servers="$servers $!"
trap 'kill $servers 2>/dev/null; wait' EXIT
until "$floors/transfers" download http://127.0.0.1/small && "$floors/transfers" upload "$web/pid" http://127.0.0.1:81/; do
    # shellcheck disable=SC2086
    kill -0 $servers
    sleep 0.05
done >/dev/null
"$@"
