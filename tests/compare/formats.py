"""Decodes CBOR and Protobuf responses without a schema, for comparison."""
import struct


def cbor(data):
    """The items of a CBOR sequence; keys and strings as Python strings, times as written."""
    items, position = [], 0
    while position < len(data):
        item, position = _cbor_item(data, position)
        items.append(item)
    return items


def _cbor_item(data, position):
    first = data[position]
    major, short, position = first >> 5, first & 31, position + 1
    if short >= 24 and short < 28:
        size = 1 << (short - 24)
        raw, position = data[position:position + size], position + size
        number = int.from_bytes(raw, 'big')
    elif short < 24:
        number = short
    elif short != 31:
        raise ValueError('a CBOR head of %d' % short)
    if major == 0:
        return number, position
    if major == 1:
        return -1 - number, position
    if major in (2, 3):
        parts = [data[position:position + number]] if short != 31 else []
        position += number if short != 31 else 0
        while short == 31 and data[position] != 0xff:
            part, position = _cbor_item(data, position)
            parts.append(part.encode() if isinstance(part, str) else part)
        position += 1 if short == 31 else 0
        whole = b''.join(parts)
        return whole.decode('utf-8', 'replace'), position
    if major in (4, 5):
        out, count = [], 0
        while (count < number) if short != 31 else (data[position] != 0xff):
            item, position = _cbor_item(data, position)
            if major == 5:
                value, position = _cbor_item(data, position)
                item = (item, value)
            out.append(item)
            count += 1
        position += 1 if short == 31 else 0
        return (dict(out) if major == 5 else out), position
    if major == 6:
        return _cbor_item(data, position)
    if short in (20, 21):
        return short == 21, position
    if short in (22, 23):
        return None, position
    if short == 27:
        return struct.unpack('>d', raw)[0], position
    if short == 25:
        return struct.unpack('>e', raw)[0], position
    if short == 26:
        return struct.unpack('>f', raw)[0], position
    raise ValueError('a CBOR value of %d' % first)


def protobuf(data):
    """Envelopes (with their 4 magic bytes), concatenated or each preceded by its length, as in a watch."""
    out, position = [], 0
    if data[:4] == b'k8s\0':
        return [message(data[4:])]
    while position + 4 <= len(data):
        size = struct.unpack('>I', data[position:position + 4])[0]
        out.append(message(data[position + 4:position + 4 + size]))
        position += 4 + size
    return out


def message(data):
    """Fields by number, in order; bytes that parse as a message are decoded as one, then as text."""
    fields, position = [], 0
    while position < len(data):
        tag, position = varint(data, position)
        number, wire = tag >> 3, tag & 7
        if number == 0:
            raise ValueError('field 0')
        if wire == 0:
            value, position = varint(data, position)
            value = '<time>' if 1700000000 < value < 4000000000 else '<port>' if 30000 <= value < 32768 else value
        elif wire == 2:
            size, position = varint(data, position)
            if position + size > len(data):
                raise ValueError('longer than there is')
            value, position = inside(data[position:position + size]), position + size
        elif wire in (1, 5):
            size = 8 if wire == 1 else 4
            if position + size > len(data):
                raise ValueError('longer than there is')
            value, position = data[position:position + size].hex(), position + size
        else:
            raise ValueError('wire type %d' % wire)
        fields.append([number, value])
    return fields


def inside(data):
    if data[:4] == b'k8s\0':
        return ['envelope', message(data[4:])]
    text = data.decode('utf-8', 'replace')
    if text.isprintable():
        return '<number>' if text.isdigit() and len(text) > 2 else text
    try:
        return message(data)
    except (ValueError, IndexError):
        return text


def varint(data, position):
    value = shift = 0
    while True:
        byte = data[position]
        position += 1
        value |= (byte & 127) << shift
        if byte < 128:
            return value, position
        shift += 7
