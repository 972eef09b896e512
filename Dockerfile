# syntax=docker/dockerfile:1
# Builds the program and packs it alone:  docker build -t demi-lineage .
# The demo writes below /data:             docker run --rm -u "$(id -u)" -v "$PWD:/data" demi-lineage demo
FROM rust:1.95-bookworm AS build
RUN apt-get update && apt-get install -y --no-install-recommends cmake clang && rm -rf /var/lib/apt/lists/*
WORKDIR /src
COPY . .
RUN --mount=type=cache,target=/usr/local/cargo/registry --mount=type=cache,target=/src/target \
    cargo build --release --locked --features full --bin demi-lineage && cp target/release/demi-lineage /usr/local/bin/

FROM debian:bookworm-slim
RUN apt-get update && apt-get install -y --no-install-recommends ca-certificates && rm -rf /var/lib/apt/lists/* \
    && useradd --system --uid 10001 --home-dir /data demi && mkdir /data && chown demi /data
COPY --from=build /usr/local/bin/demi-lineage /usr/local/bin/demi-lineage
USER demi
WORKDIR /data
VOLUME /data
ENTRYPOINT ["demi-lineage"]
CMD ["--help"]
