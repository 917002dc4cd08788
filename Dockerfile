# The image is the binary and nothing else:
#
#   scripts/build-static
#   docker build -t towebp .
#   docker run --network host -v towebp-data:/data towebp
#
# The server accepts loopback addresses only, so the container shares the host's network.
FROM scratch
COPY target/static/towebp /towebp
COPY LICENSE-MIT LICENSE-APACHE /
VOLUME /data
ENTRYPOINT ["/towebp"]
CMD ["serve", "--listen", "127.0.0.1:8080", "--data", "/data"]
