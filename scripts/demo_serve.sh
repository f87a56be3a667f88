#!/usr/bin/env bash
# The serving part of scripts/demo.sh: NGINX on 127.0.0.1 with the module, real
# files fetched by curl, every answer decompressed by stock zstd and compared,
# and what that does to small requests beside it.
#   scripts/demo_serve.sh FILE...
# LEVEL is the level, 15 if not set. Builds below $SEGZSTD_BUILD_ROOT, or build.
set -eu -o pipefail
export LC_ALL=C

level=${LEVEL:-15}
seconds=3 # of each measurement of small requests, which come 200 times a second

files=()
for file in "$@"; do
    [ -f "$file" ] && [ -r "$file" ] ||
        { echo "demo: $file is not a file that can be read" >&2 && exit 1; }
    files+=("$(realpath "$file")")
done
[ ${#files[@]} != 0 ] ||
    { sed -n '2,/^set/{/^set/!s/^# \{0,1\}//p;}' "$0" >&2 && exit 2; }
cd "$(dirname "$0")/.."
build_dir=$(realpath -m "${SEGZSTD_BUILD_ROOT:-build}/demo-nginx")
module=$build_dir/ngx_http_zstd_filter_module.so
tmp=$(mktemp -d)
nginx_pid=

# Also after an error: what was started here is ended, by its process id.
clean_up() {
    if [ -n "$nginx_pid" ]; then
        kill "$nginx_pid" 2>/dev/null || true
        wait "$nginx_pid" 2>/dev/null || true
    fi
    rm -rf "$tmp"
}
trap clean_up EXIT
trap 'exit 1' INT TERM

build() {
    scripts/setup.sh nginx
    echo "demo: building the NGINX module into $build_dir"
    scripts/build_nginx_module.sh "$build_dir" >"$tmp/log" 2>&1 ||
        { tail -n 40 "$tmp/log" >&2 && return 1; }
    cc -std=c11 -O2 -o "$build_dir/segzstd_load" bench/nginx/load/*.c
}

free_port() {
    python3 -c 'import socket
sock = socket.socket()
sock.bind(("127.0.0.1", 0))
print(sock.getsockname()[1])'
}

write_config() {
    local path
    echo "load_module $module;"
    [ "$(id -u)" != 0 ] || echo 'user root;' # to read the files
    echo "worker_processes 1; daemon off; pid $tmp/pid;"
    echo "error_log $tmp/error.log warn; events { }"
    echo "http { access_log off; sendfile on; tcp_nopush on;"
    echo "    keepalive_requests 1000000;"
    for path in client_body proxy fastcgi uwsgi scgi; do
        echo "    ${path}_temp_path $tmp/$path;"
    done
    cat <<-END
	    zstd_types *;
	    zstd_comp_level $level;
	    server {
	        listen 127.0.0.1:$port;
	        location = /small { alias $tmp/small.json; }
	        location /off/  { alias $tmp/files/; }
	        location /loop/ { alias $tmp/files/; zstd on; zstd_thread_pool off; }
	        location /pool/ { alias $tmp/files/; zstd on; }
	        location = /status { zstd_status; }
	    }
	}
	END
}

start_nginx() {
    local try
    port=$(free_port)
    write_config >"$tmp/nginx.conf"
    nginx -p "$tmp" -c "$tmp/nginx.conf" -e "$tmp/error.log" 2>"$tmp/stderr" &
    nginx_pid=$!
    for try in $(seq 100); do
        if curl -s -o "$tmp/status" "http://127.0.0.1:$port/status"; then
            return
        fi
        kill -0 "$nginx_pid" 2>/dev/null || break
        sleep 0.05
    done
    cat "$tmp/stderr" >&2
    echo "demo: nginx did not start" >&2
    return 1
}

# fetch PLACE NAME prints the seconds that curl took; the answer is $tmp/answer.
fetch() {
    curl -sS --fail -H 'Accept-Encoding: zstd' -D "$tmp/head" \
        -o "$tmp/answer" -w '%{time_total}\n' "http://127.0.0.1:$port/$1/$2"
}

# Fails, loudly, unless the answer is zstd and gives the file back.
check() {
    grep -qi '^content-encoding: zstd' "$tmp/head" ||
        { echo "demo: $1 came without Content-Encoding: zstd" >&2 && exit 1; }
    zstd -q -d -c --memory=8MB <"$tmp/answer" | cmp - "$tmp/files/$1" ||
        { echo "demo: $1 came back changed" >&2 && exit 1; }
}

# fastest PLACE NAME prints the milliseconds of the fastest of three, or of
# fewer if they take long.
fastest() {
    local times= time start=$SECONDS
    for _ in 1 2 3; do
        time=$(fetch "$1" "$2")
        check "$2"
        times="$times $time"
        [ $((SECONDS - start)) -lt 2 ] || break
    done
    echo "$times" | tr ' ' '\n' | sed '/^$/d' | sort -n |
        awk 'NR == 1 { printf "%.1f", 1000 * $1 }'
}

# p99 PLACE NAME RATE prints milliseconds of small requests, beside so many
# large ones per second.
p99() {
    local coding=zstd
    [ "$1" != off ] || coding=identity
    "$build_dir/segzstd_load" --small /small --large "/$1/$2" \
        --large-encoding $coding --large-rate "$3" --seconds $seconds \
        "127.0.0.1:$port" >"$tmp/load" ||
        { cat "$tmp/load" >&2 && exit 1; }
    awk '/^small/ { small = 1 } /^large/ { small = 0 }
         small && /last byte/ { printf "%.1f", $6 }' "$tmp/load"
}

short_name() {
    [ ${#1} -le 18 ] && echo "$1" || echo "${1:0:16}.."
}

# In 78 columns.
row() {
    printf '%-18s %6s %6s %6s %8s %8s %6s %6s %6s\n' "$@" | sed 's/ *$//'
}

serve() {
    local name=$1 size packed loop pool rate off_p99 loop_p99 pool_p99
    loop=$(fastest loop "$name")
    pool=$(fastest pool "$name")
    size=$(stat -L -c %s "$tmp/files/$name")
    packed=$(stat -c %s "$tmp/answer")
    # half of what the loop can do
    rate=$(awk -v ms="$loop" 'BEGIN { printf "%.2f", 500 / (ms + 0.1) }')
    off_p99=$(p99 off "$name" "$rate")
    loop_p99=$(p99 loop "$name" "$rate")
    pool_p99=$(p99 pool "$name" "$rate")
    row "$(short_name "$name")" $((size / 1000)) $((packed / 1000)) \
        "$(awk -v a="$size" -v b="$packed" 'BEGIN { printf "%.2f", a / b }')" \
        "$loop" "$pool" "$off_p99" "$loop_p99" "$pool_p99"
}

build
mkdir "$tmp/files"
chmod 755 "$tmp"
printf '{"id": %d, "name": "a small answer"}\n' $(seq 50) \
    >"$tmp/small.json"
names=()
for file in "${files[@]}"; do
    names+=("$(basename "$file" | tr -c 'A-Za-z0-9._\n-' _)")
    ln -sf "$file" "$tmp/files/${names[-1]}"
done
start_nginx

printf '\nnginx %s on 127.0.0.1:%s, zstd_comp_level %s, %s CPUs\n\n' \
    "$(nginx -v 2>&1 | sed 's/.*nginx\///')" "$port" "$level" "$(nproc)"
row '' '' '' '' 'time ms' '' 'p99 ms' '' ''
row file kB zstd ratio loop pool off loop pool
for name in "${names[@]}"; do
    serve "$name"
done
if grep -E '\[(alert|crit|emerg|error)\]' "$tmp/error.log" >&2; then
    echo 'demo: nginx logged errors' >&2
    exit 1
fi

cat <<END

Every answer was decompressed by zstd and is the same as its file.
loop, pool: compressed on the event loop (zstd_thread_pool off), and on NGINX's
thread pool, which is the default. time: of one answer, the fastest of three.
p99: latency of small uncompressed requests, 200 per second, beside large ones,
as many per second as keep the loop busy for half of the time; off: beside as
many, uncompressed.
END
