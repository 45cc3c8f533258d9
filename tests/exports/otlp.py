"""What does an OTLP message of profiles say, by the public schema?"""

import collections
import sys

from google.protobuf.unknown_fields import UnknownFieldSet


def check_fields(message, path):
    """A field that the schema does not have, or that has another type, is an error."""
    waiting = [message]
    while waiting:
        at = waiting.pop()
        if len(UnknownFieldSet(at)):
            sys.exit(f"{path}: {at.DESCRIPTOR.name} has fields that its schema does not have")
        for field, value in at.ListFields():
            if field.message_type is not None:
                waiting += value if hasattr(value, "__len__") else [value]


def leaves(data):
    """What each name weighs as a leaf. `data`: ProfilesData, or the request of the service, which has the same fields."""
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
