"""Servers with threads, on loopback, with a client that says what it got."""

from table import Program

# Until it answers, at most 20 s; and its end, which the shell waits for.
READY = "ready() { i=0; until \"$@\" >/dev/null 2>&1; do i=$((i+1)); [ $i -lt 200 ] || { echo not ready; exit 1; }; sleep 0.1; done; }\n"
STOP = "kill $pid\nwait $pid || true\n"


SERVERS = [
    Program("redis", "redis-server redis-tools", ("redis-server", "redis-benchmark"), READY +
            "./run redis-server --port $PORT --bind 127.0.0.1 --io-threads 3 --io-threads-do-reads yes --appendonly yes --save '' --dir . > log 2>&1 & pid=$!\n"
            "ready redis-cli -p $PORT ping\nredis-benchmark -q -p $PORT -n 3000 -c 8 -P 4 -t set,get,incr,lpush | sed 's/.*\\r//'\n"
            "redis-cli -p $PORT get counter:__rand_int__\nredis-cli -p $PORT llen mylist\nredis-cli -p $PORT flushall async\nredis-cli -p $PORT dbsize\n"
            "redis-cli -p $PORT bgrewriteaof >/dev/null\nredis-cli -p $PORT shutdown nosave\nwait $pid && echo ended $?\n",
            replace=((r"^(\w+): .*requests per second.*", r"\1"),), drop="a lock is held",
            keeps=False),  # The server parks its I/O threads by mutexes that it holds.
    Program("memcached", "memcached libmemcached-tools", ("memcached", "memccp"), READY +
            "./run memcached -l 127.0.0.1 -p $PORT -t 4 -U 0 -u root & pid=$!\nready memcping --servers=127.0.0.1:$PORT\n"
            "split -b 20000 $INPUTS/random part-\nmemccp --servers=127.0.0.1:$PORT part-*\n"
            "for i in part-*; do memccat --servers=127.0.0.1:$PORT --file=got $i; cmp $i got; done; echo all\n"
            "memcslap --servers=127.0.0.1:$PORT --test=set --execute-number=500 --concurrency=4 >/dev/null\n"
            "memcstat --servers=127.0.0.1:$PORT | grep threads\n" + STOP,
            drop="^Server"),
    Program("nginx", "nginx", ("nginx", "ab"), READY + "sed \"s/PORT/$PORT/; s|ROOT|$INPUTS|\" $FILES/nginx.conf > nginx.conf\n"
            "./run nginx -p $PWD/ -c nginx.conf & pid=$!\nready curl -sf http://127.0.0.1:$PORT/lines\n"
            "curl -s http://127.0.0.1:$PORT/random | cksum\n"
            "ab -q -n 600 -c 8 http://127.0.0.1:$PORT/lines | grep -E '^(Complete|Failed|Document Len)'\n" + STOP),
    Program("apache2", "apache2-bin apache2-utils", ("/usr/sbin/apache2", "ab"), READY +
            "sed \"s/PORT/$PORT/; s|ROOT|$INPUTS|\" $FILES/apache2.conf > conf\n"
            "./run /usr/sbin/apache2 -d $PWD -f conf -X & pid=$!\nready curl -sf http://127.0.0.1:$PORT/lines\n"
            "curl -s http://127.0.0.1:$PORT/random | cksum\n"
            "ab -q -n 600 -c 8 http://127.0.0.1:$PORT/lines | grep -E '^(Complete|Failed|Document Len)'\n" + STOP),
    Program("haproxy", "haproxy", ("haproxy", "ab"), READY +
            "sed \"s/PORT/$PORT/\" $FILES/haproxy.conf > conf\n./run haproxy -db -q -f conf & pid=$!\n"
            "ready curl -sf http://127.0.0.1:$PORT/\ncurl -s http://127.0.0.1:$PORT/\necho\n"
            "ab -q -n 1000 -c 8 http://127.0.0.1:$PORT/ | grep -E '^(Complete|Failed|Document Len)'\n" + STOP),
    Program("unbound", "unbound", ("unbound", "kdig"), READY +
            "sed \"s/PORT/$PORT/\" $FILES/unbound.conf > conf\n./run unbound -d -c conf & pid=$!\n"
            "ready kdig +short @127.0.0.1 -p $PORT a.test\nfor i in 1 2 3 4 5 6 7 8; do kdig +short @127.0.0.1 -p $PORT a.test; "
            "kdig +tcp +short @127.0.0.1 -p $PORT b.test; done\n" + STOP),
]
