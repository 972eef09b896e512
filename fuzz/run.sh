#!/usr/bin/env bash
# Runs fuzz targets one after the other: fuzz/run.sh [SECONDS [TARGET...]], by default all of them for 600 seconds each.
#
# Each begins with inputs made of this project's samples, goes on in fuzz/corpus/TARGET, and leaves what it finds in
# fuzz/artifacts/TARGET. Ends with status 1 if one of them found something. Files are written to a folder in memory.
# FUZZ_FLAGS are given to `cargo fuzz run`; without any, the targets run without a sanitizer, since this project has no
# unsafe code. Each is compiled with the features that fuzz/Cargo.toml names for it, and no others.
set -euo pipefail
cd "$(dirname "$0")"
seconds="${1:-600}"
shift || true
targets=("$@")
[ "${#targets[@]}" -gt 0 ] || mapfile -t targets < <(cargo fuzz list)
[ -n "${FUZZ_FLAGS:-}" ] || FUZZ_FLAGS="-s none"
if [ -d /dev/shm ]; then TMPDIR="$(mktemp -d -p /dev/shm)"; else TMPDIR="$(mktemp -d)"; fi
export TMPDIR
trap 'rm -rf "$TMPDIR"' EXIT

# seed TARGET PREFIX FILE...: each file after the bytes that the target takes for its numbers and switches.
seed() {
    local target="$1" prefix="$2" file
    shift 2
    mkdir -p "corpus/$target"
    for file in "$@"; do
        { printf "$prefix"; head -c 4000 "$file"; } >"corpus/$target/$(printf '%s' "$prefix" | tr '\\' _)-$(basename "$file")"
    done
}
formats=(../ingest/formats/tests/formats/*)
seed event_record '' ../ingest/formats/tests/formats/native.jsonl
head -n 1 ../ingest/formats/tests/formats/native.jsonl >"$TMPDIR/line"
seed event_record '' "$TMPDIR/line"
printf '2024-05-01T10:00:00Z stdout P one \n2024-05-01T10:00:01Z stderr F two\n2024-05-01T10:00:02Z stdout F end\n' >"$TMPDIR/cri"
printf '{"log":"a ","stream":"stdout","time":"2024-05-01T10:00:00Z"}\n{"log":"b\\n","stream":"stdout","time":"2024-05-01T10:00:00Z"}\n' >"$TMPDIR/docker"
for which in '\000' '\001'; do seed wrapped_log "$which"'\001' "$TMPDIR/cri" "$TMPDIR/docker"; done
number=0
for sample in p-trace.txt p-trace-json.json pobserve.txt pobserve-lines.txt tlc.txt tlc-json.json itf.json; do
    seed checker_traces "\\00$number" "../ingest/formats/tests/formats/$sample"
    number=$((number + 1))
done
printf '<log>\n<e who="a" n="1"/>\n<e who="b">x &amp; <t>y</t></e>\n</log>\n' >"$TMPDIR/elements.xml"
for flags in '\000' '\001' '\002'; do seed xml_log "$flags" "$TMPDIR/elements.xml"; done
seed line_reader '\100\100\100' ../ingest/formats/tests/formats/native.jsonl
seed tcp_framing '\377\001' ../ingest/formats/tests/formats/native.jsonl
for flags in '\001\000\100' '\000\377\377'; do seed http_body "$flags" ../ingest/formats/tests/formats/native.jsonl; done
gzip -c ../ingest/formats/tests/formats/native.jsonl >"$TMPDIR/packed.gz"
seed http_body '\001\377\377' "$TMPDIR/packed.gz"
for flags in '\000\001' '\000\000'; do seed otlp_json "$flags" ../ingest/formats/tests/formats/otlp.json; done
for flags in '\001\001' '\001\000'; do seed otlp_json "$flags" ../ingest/formats/tests/formats/zipkin.json; done
seed nats_message '\001\377' ../ingest/formats/tests/formats/otlp.json
seed nats_message '\000\377' ../ingest/formats/tests/formats/native.jsonl
seed mapping_file '' ../ingest/formats/mappings/*.toml ../examples/mappings/*.toml
seed daemon_config '' ../ingest/daemon/dist/demi.toml
# What `explore --budget 12states --bound 1 --faults 1 --depth 5` leaves of the two-phase model with one client message, without its first line.
seed unfinished '' seeds/unfinished.jsonl
seed scenario '' ../replay/scenarios/*.toml ../examples/demo/scenario.toml
# The first byte chooses the mapping: every format meets every one.
for which in $(seq 0 31); do
    for target in mapped_log left_log; do
        prefix="$(printf '\\%03o' "$which")"
        [ "$target" = mapped_log ] || prefix="$prefix"'\001'
        seed "$target" "$prefix" "${formats[@]}"
    done
done

# features TARGET: those that fuzz/Cargo.toml names for it.
features() {
    awk -v target="name = \"$1\"" '/^\[\[bin\]\]/ { is = 0 } $0 == target { is = 1 } is && /^required-features/ { gsub(/[^a-z,]|required-features/, ""); print }' Cargo.toml
}

failed=()
for target in "${targets[@]}"; do
    mkdir -p "corpus/$target"
    echo "== $target" >&2
    # shellcheck disable=SC2086
    cargo +nightly fuzz run --features "$(features "$target")" $FUZZ_FLAGS "$target" -- -max_total_time="$seconds" -max_len=8192 -timeout=20 \
        -rss_limit_mb=4096 -print_final_stats=1 2>"$TMPDIR/log" || failed+=("$target")
    grep -E '^(Done|stat::|SUMMARY|thread|==[0-9]+==|artifact_prefix)|panicked' "$TMPDIR/log" | sed "s/^/$target: /" || true
done
if [ "${#failed[@]}" -gt 0 ]; then
    echo "found something: ${failed[*]}" >&2
    exit 1
fi
