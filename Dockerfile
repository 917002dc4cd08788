# An image of one static file, its licenses and an empty /data; no shell, no libc. It is built on a machine of either
# processor for both, without emulation:
#
#     docker build --tag towebp .
#     docker run --publish 127.0.0.1:8080:8080 --volume towebp-data:/data --read-only towebp
#     docker buildx build --platform linux/amd64,linux/arm64 --tag registry.example.org/towebp:0.1.0 --push .
#
# `scripts/image` makes the same image without an engine for containers, from files of `scripts/build-static`.

# The digest is what is taken; the tag says which it was. A newer one: docker buildx imagetools inspect rust:1.95-slim
FROM --platform=$BUILDPLATFORM docker.io/library/rust:1.95-slim@sha256:e14e87345b4d5964ddcc3491d27ee046a0f23820f340c3c1e24da6880141f7c0 AS build
# Python writes the licenses of what is compiled in; any version will do.
# hadolint ignore=DL3008
RUN apt-get update \
    && apt-get install --yes --no-install-recommends python3 \
    && rm -rf /var/lib/apt/lists/*
WORKDIR /source
COPY . .
ARG TARGETARCH
# The linker is rust-lld, so that the other processor needs no more than its Rust target. Each processor has a folder of its own, and
# what was compiled stays there for the next time.
RUN --mount=type=cache,target=/usr/local/cargo/registry,sharing=locked \
    --mount=type=cache,target=/source/target,id=towebp-target-$TARGETARCH,sharing=locked \
    case ${TARGETARCH:-$(uname -m)} in amd64 | x86_64) arch=x86_64 ;; arm64 | aarch64) arch=aarch64 ;; *) exit 1 ;; esac \
    && rustup target add "$arch-unknown-linux-musl" \
    && scripts/build-static "$arch" \
    && install -D "target/static/towebp-$arch" /image/towebp \
    && scripts/inventory licenses "$arch" /image/THIRD-PARTY.txt \
    && cp LICENSE-MIT LICENSE-APACHE /image/ \
    && mkdir /data

FROM scratch
COPY --from=build /image/ /
COPY --from=build --chown=65532:65532 /data /data
ARG VERSION=0.1.0
ARG SOURCE=
ARG REVISION=
LABEL org.opencontainers.image.title="towebp" \
    org.opencontainers.image.description="Turns PNG, JPEG, GIF and BMP pictures into WebP by one HTTP call" \
    org.opencontainers.image.licenses="MIT OR Apache-2.0" \
    org.opencontainers.image.version="$VERSION" \
    org.opencontainers.image.source="$SOURCE" \
    org.opencontainers.image.revision="$REVISION"
# Every flag of `serve` is a variable, too: --signup closed is TOWEBP_SIGNUP=closed.
ENV TOWEBP_LISTEN=0.0.0.0:8080 \
    TOWEBP_DATA=/data
VOLUME /data
EXPOSE 8080
# Nobody's user: a volume that is a folder of the machine has to be its own (chown 65532:65532).
USER 65532:65532
HEALTHCHECK --interval=10s --timeout=5s --start-period=10s CMD ["/towebp", "health"]
ENTRYPOINT ["/towebp"]
CMD ["serve"]
