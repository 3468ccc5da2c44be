#!/usr/bin/env python3
"""Prints, as hex, an event file made with Google's protobuf library and a bitwise CRC-32C.

The schema is declared here from tensorflow's event.proto and summary.proto; the output is pasted into
tests/io/tensorboard_test.cc.
"""
import struct

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

DOUBLE, FLOAT, INT64, STRING, MESSAGE = 1, 2, 3, 9, 11
file = descriptor_pb2.FileDescriptorProto(name="event.proto", package="t", syntax="proto3")


def message(name, fields, parent=None):
    made = (parent.nested_type if parent else file.message_type).add(name=name)
    for number, field, kind, repeated, type_name in fields:
        made.field.add(name=field, number=number, type=kind, label=3 if repeated else 1, type_name=type_name)
    return made


message("Event", [(1, "wall_time", DOUBLE, False, None), (2, "step", INT64, False, None),
                  (3, "file_version", STRING, False, None), (5, "summary", MESSAGE, False, ".t.Summary")])
summary = message("Summary", [(1, "value", MESSAGE, True, ".t.Summary.Value")])
value = message("Value", [(1, "tag", STRING, False, None), (2, "simple_value", FLOAT, False, None)], summary)
value.oneof_decl.add(name="value")  # a member of a oneof is written even when zero
value.field[1].oneof_index = 0
pool = descriptor_pool.DescriptorPool()
pool.Add(file)
Event = message_factory.MessageFactory(pool).GetPrototype(pool.FindMessageTypeByName("t.Event"))


def crc32c(data):
    crc = 0xFFFFFFFF
    for byte in data:
        for bit in range(8):
            mix = (crc ^ (byte >> bit)) & 1
            crc = (crc >> 1) ^ (0x82F63B78 if mix else 0)
    return crc ^ 0xFFFFFFFF


def masked(data):
    crc = crc32c(data)
    return ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF


def record(event):
    data = event.SerializeToString()
    length = struct.pack("<Q", len(data))
    return length + struct.pack("<I", masked(length)) + data + struct.pack("<I", masked(data))


assert crc32c(b"123456789") == 0xE3069283
events = [Event(wall_time=1700000000.25, file_version="brain.Event:2")]
event = Event(wall_time=1700000001.5, step=300)
event.summary.value.add(tag="loss/train", simple_value=0.125)
event.summary.value.add(tag="genauigkeit/prüfung", simple_value=-2.5e-7)
events.append(event)
event = Event(wall_time=1700000002.0, step=2**40)
event.summary.value.add(tag="loss/train", simple_value=float("inf"))
event.summary.value.add(tag="zero", simple_value=0.0)
events.append(event)
text = b"".join(record(e) for e in events).hex()
for start in range(0, len(text), 100):
    print('    "' + text[start:start + 100] + '"')
