"""Sparse matrices A (PTX ISA 9.0, "Sparse matrix storage"): a row of K elements of which half are stored, and for each
chunk of it four bits that say where the stored ones belong. Rows are expanded to all K elements, None where nothing is
stored: such an element is not multiplied, whatever it meets."""

from threads import NotModelled

# Bits of an element: elements of a chunk, and how many of them stand together.
CHUNKS = {32: (2, 1), 16: (4, 1), 8: (4, 1), 4: (8, 2)}


def places(bits, four):
    """Indices within a chunk of its stored elements, in their order."""
    if bits == 32:
        return {0b0100: [0], 0b1110: [1]}[four]
    first, second = four % 4, four // 4
    assert first != second
    together = CHUNKS[bits][1]
    return [i * together + j for i in (first, second) for j in range(together)]


def expand(stored, fours, bits):
    """A row of all K elements of one of the stored ones; fours: the metadata of its chunks."""
    row, rest = [], list(stored)
    for four in fours:
        chunk = [None] * CHUNKS[bits][0]
        for place in places(bits, four):
            chunk[place] = rest.pop(0)
        row += chunk
    assert not rest
    return row


def of_warp(words, selector, k, bits):
    """metadata[row][chunk] of 16 rows, of the metadata registers of 32 lanes. Lanes in groups of four: group g has rows
    g and g + 8. 16 and 32 bits: a register has four chunks of the one and then of the other row, the next lane goes on
    in both. Fewer: a register has eight chunks of one row, the next lane has those of the other row; the pair of lanes
    after them goes on. The selector says which lanes of the four are meant, where not all are needed."""
    chunks = k // CHUNKS[bits][0]
    metadata = [[None] * chunks for _ in range(16)]
    needed = chunks // 4  # lanes of a group
    if needed not in (1, 2, 4) or selector >= 4 // needed:
        raise NotModelled('selector %d' % selector)
    for group in range(8):
        for i in range(needed):
            word = words[4 * group + selector * needed + i]
            fours = [word >> 4 * n & 15 for n in range(8)]
            if bits >= 16:
                metadata[group][4 * i : 4 * i + 4] = fours[:4]
                metadata[group + 8][4 * i : 4 * i + 4] = fours[4:]
            else:
                metadata[group + 8 * (i % 2)][8 * (i // 2) : 8 * (i // 2) + 8] = fours
    return metadata


def expand_rows(rows, metadata, bits):
    return [expand(row, fours, bits) for row, fours in zip(rows, metadata)]
