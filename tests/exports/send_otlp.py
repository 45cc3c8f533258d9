import sys
import grpc

EXPORT = "/opentelemetry.proto.collector.profiles.v1development.ProfilesService/Export"
with grpc.insecure_channel(sys.argv[1]) as channel, open(sys.argv[2], "rb") as file:
    channel.unary_unary(EXPORT)(file.read())
