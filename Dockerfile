# The image is the binary and nothing else:
#
#   scripts/build-static
#   docker build -t towebp .
#   docker run -p 8080:8080 -v towebp-data:/data towebp
FROM scratch
COPY target/static/towebp /towebp
COPY LICENSE-MIT LICENSE-APACHE fonts/*.LICENSE.txt /
VOLUME /data
ENTRYPOINT ["/towebp"]
CMD ["serve", "--listen", "0.0.0.0:8080", "--data", "/data"]
