#!/usr/bin/env python3
"""Which methods do the public schemas of Perfetto and OpenTelemetry see in exports?

usage: schemas.py PERFETTO OTLP

Parses the files with the messages of the Python packages `perfetto` and `opentelemetry-proto`. A field that these do not have, or that
has another type, is an error. Prints the heaviest leaves of each.
"""

import collections
import sys
from pathlib import Path

from google.protobuf.unknown_fields import UnknownFieldSet
from opentelemetry.proto.profiles.v1development import profiles_pb2
from perfetto.protos.perfetto.trace import perfetto_trace_pb2


def parsed(message, path):
    """The message, of known fields only."""
    message.ParseFromString(Path(path).read_bytes())
    waiting = [message]
    while waiting:
        at = waiting.pop()
        if len(UnknownFieldSet(at)):
            sys.exit(f"{path}: {at.DESCRIPTOR.name} has fields that its schema does not have")
        for field, value in at.ListFields():
            if field.message_type is not None:
                waiting += value if hasattr(value, "__len__") else [value]
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


def otlp(path):
    data = parsed(profiles_pb2.ProfilesData(), path)
    tables, weights = data.dictionary, collections.Counter()
    for table in ("mapping", "location", "function", "link", "stack", "attribute"):
        first = getattr(tables, f"{table}_table")[0]
        assert not first.ListFields(), f"the first of {table}_table is empty"
    for resource in data.resource_profiles:
        for sample in (sample for scope in resource.scope_profiles for profile in scope.profiles for sample in profile.samples):
            leaf = tables.location_table[tables.stack_table[sample.stack_index].location_indices[0]]
            function = tables.function_table[leaf.lines[0].function_index]
            keys = {tables.string_table[tables.attribute_table[index].key_strindex] for index in sample.attribute_indices}
            assert keys == {"thread.id", "thread.name", "varid.layer"}, keys
            weights[tables.string_table[function.name_strindex]] += sum(sample.values)
    return weights


def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    for weights in (perfetto(sys.argv[1]), otlp(sys.argv[2])):
        for name, weight in weights.most_common(25):
            print(weight, name)
    return 0


if __name__ == "__main__":
    sys.exit(main())
