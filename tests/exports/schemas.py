#!/usr/bin/env python3
"""Which methods do the public schemas of Perfetto and OpenTelemetry see in exports?

usage: schemas.py PERFETTO OTLP

Parses the files with the messages of the Python packages `perfetto` and `opentelemetry-proto`. A field that these do not have, or that
has another type, is an error. Prints the heaviest leaves of each.
"""

import collections
import sys
from pathlib import Path

from opentelemetry.proto.profiles.v1development import profiles_pb2
from perfetto.protos.perfetto.trace import perfetto_trace_pb2

import otlp


def parsed(message, path):
    """The message, of known fields only."""
    message.ParseFromString(Path(path).read_bytes())
    otlp.check_fields(message, path)
    return message


def perfetto(path):
    names, frames, stacks, threads = {}, {}, {}, set()
    weights = collections.Counter()
    for packet in parsed(perfetto_trace_pb2.Trace(), path).packet:
        threads |= {thread.tid for thread in packet.process_tree.threads}
        names |= {name.iid: name.str.decode() for name in packet.interned_data.function_names}
        frames |= {frame.iid: frame for frame in packet.interned_data.frames}
        stacks |= {stack.iid: stack.frame_ids for stack in packet.interned_data.callstacks}
        if packet.HasField("perf_sample") and packet.perf_sample.callstack_iid:
            assert packet.perf_sample.tid in threads and packet.timestamp
            leaf = frames[stacks[packet.perf_sample.callstack_iid][-1]]
            weights[names[leaf.function_name_id]] += 1
    return weights


def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    profiles = parsed(profiles_pb2.ProfilesData(), sys.argv[2])
    for weights in (perfetto(sys.argv[1]), otlp.leaves(profiles)):
        for name, weight in weights.most_common(25):
            print(weight, name)
    return 0


if __name__ == "__main__":
    sys.exit(main())
