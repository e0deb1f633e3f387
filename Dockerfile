# The program in an image, for the organism in the current folder:
#
#   docker build -t systole .
#   docker run --rm -i --user "$(id -u):$(id -g)" --volume "$PWD:/organism" systole run organism.yaml task.xml --until-idle
#
# An end in order may take a minute: docker stop --timeout 70.
FROM rust:1-slim-bookworm AS build
WORKDIR /systole
COPY . .
RUN bash scripts/deb && mv target/*.deb /

FROM debian:bookworm-slim
# Python is for commands and workers.
RUN --mount=type=bind,from=build,source=/,target=/build \
    apt-get update && apt-get install -y --no-install-recommends python3 ca-certificates /build/systole_*.deb && \
    rm -rf /var/lib/apt/lists/* && useradd systole
USER systole
WORKDIR /organism
ENTRYPOINT ["systole"]
