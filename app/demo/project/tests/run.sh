#!/bin/sh
# Runs every test and says how many failed.
cd "$(dirname "$0")/.." || exit 2
. ./src/cart.sh

failed=0
check() { # NAME WANT GOT
	if [ "$2" = "$3" ]; then
		echo "ok    $1"
	else
		echo "FAIL  $1: want $2, got $3"
		echo "$1 failed: want $2, got $3" >&2
		failed=$((failed + 1))
	fi
}

check "two of one price" 2598 "$(total 1299 2)"
check "nothing in the cart" 0 "$(total 1299 0)"
check "ten percent off an even price" 900 "$(discount 1000 10)"
check "half off an odd price rounds up" 650 "$(discount 1299 50)"
check "shipping below the limit" 490 "$(shipping 4999)"
check "free shipping" 0 "$(shipping 5000)"

echo "$failed failed"
[ "$failed" = 0 ]
