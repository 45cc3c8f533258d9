#!/usr/bin/env python3
"""Which methods does a server of OpenTelemetry's profiles service see in an export that is sent to it?

usage: otlp_grpc.py OTLP

Starts a server on loopback, sends it the file by send_otlp.py, decodes the request with the messages of the Python package
`opentelemetry-proto`, and prints the heaviest leaves. A field that these do not have is an error; so is a guide that shows another client.
"""

import subprocess
import sys
from concurrent import futures
from pathlib import Path

import grpc
from opentelemetry.proto.collector.profiles.v1development import profiles_service_pb2, profiles_service_pb2_grpc

import otlp

HERE = Path(__file__).parent
CLIENT = HERE / "send_otlp.py"
GUIDE = HERE / "../../docs/guide-exporting.md"


class Receiver(profiles_service_pb2_grpc.ProfilesServiceServicer):
    def __init__(self):
        self.requests = []

    def Export(self, request, context):
        self.requests.append(request)
        return profiles_service_pb2.ExportProfilesServiceResponse()


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    shown = "".join(f"    {line}".rstrip() + "\n" for line in CLIENT.read_text().splitlines())
    assert shown in GUIDE.read_text(), f"{GUIDE} shows another client than {CLIENT}"
    receiver = Receiver()
    # Recordings are larger than the 4 MB that a server takes if it is told nothing.
    server = grpc.server(futures.ThreadPoolExecutor(1), options=[("grpc.max_receive_message_length", -1)])
    profiles_service_pb2_grpc.add_ProfilesServiceServicer_to_server(receiver, server)
    port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    try:
        subprocess.run([sys.executable, "-B", CLIENT, f"127.0.0.1:{port}", sys.argv[1]], check=True)
    finally:
        server.stop(None).wait()
    [request] = receiver.requests
    otlp.check_fields(request, sys.argv[1])
    for name, weight in otlp.leaves(request).most_common(25):
        print(weight, name)


if __name__ == "__main__":
    main()
