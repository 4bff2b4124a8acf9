#!/usr/bin/env bash
# Runs every fuzz target of the module for a while: policy/fuzz.sh DURATION.
# Inputs that fail are written to testdata/fuzz beside the target.
set -euo pipefail
cd "$(dirname "$0")/.."
for_each=${1:?usage: policy/fuzz.sh DURATION, for example 3s}
go=${GO:-go}
log=$(mktemp)
trap 'rm -f "$log"' EXIT

targets=$(grep -rhoE --include='*_test.go' --with-filename '^func Fuzz[A-Za-z0-9_]*' . | sort || true)
if [ -z "$targets" ]; then
	echo "fuzz: no targets"
	exit 0
fi
count=0
while IFS=: read -r file func; do
	name=${func#func }
	dir=$(dirname "$file")
	echo "fuzz: $dir $name for $for_each"
	if ! "$go" test -run '^$' -fuzz "^$name\$" -fuzztime "$for_each" "$dir" >"$log" 2>&1; then
		# The engine at times reports its own end as an error; a failing input it
		# always writes to a file.
		if grep -q 'context deadline exceeded' "$log" && ! grep -q 'Failing input written' "$log"; then
			echo "fuzz: $name: the time was over"
			count=$((count + 1))
			continue
		else
			cat "$log"
			exit 1
		fi
	fi
	tail -n 2 "$log"
	count=$((count + 1))
done <<<"$targets"
echo "fuzz: $count targets"
