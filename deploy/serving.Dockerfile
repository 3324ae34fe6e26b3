# The image trainyard-serving:latest, for those who have an engine; script/image --serving makes the same one without, from a Python
# that is there. In the checkout:
#
#   docker build -f deploy/serving.Dockerfile --build-arg TENSORFLOW=2.15.1 -t trainyard-serving:latest .
FROM debian:12-slim AS build
ARG TENSORFLOW=2.15.1
COPY . /src
RUN /src/script/build release trainyard
# Its libraries are all that serving needs, so nothing that it depends on.
RUN python3 -m venv /tensorflow && /tensorflow/bin/pip install --no-deps "tensorflow-cpu==$TENSORFLOW"
RUN /src/script/image --serving /tensorflow/bin/python --root /image

FROM scratch
COPY --from=build /image /
ENV PATH=/usr/bin HOME=/home/trainyard TRAINYARD_TENSORFLOW=/usr/lib/tensorflow
WORKDIR /home/trainyard
# A number, so that Kubernetes can tell that it is not root.
USER 65532:65532
ENTRYPOINT ["/usr/bin/trainyard"]
