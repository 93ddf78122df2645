"""A font of five by seven dots, as old workstations wrote it: capitals, digits and a few signs."""

import numpy as np

from heatcheck.core.records import Mask

HEIGHT, WIDTH = 7, 5
_ROWS = """
A 0E11111F111111  B 1E11111E11111E  C 0E11101010110E  D 1E11111111111E  E 1F10101E10101F  F 1F10101E101010
G 0E11101711110F  H 1111111F111111  I 0E04040404040E  J 0702020202120C  K 11121418141211  L 1010101010101F
M 111B1515111111  N 11191513111111  O 0E11111111110E  P 1E11111E101010  Q 0E11111115120D  R 1E11111E141211
S 0F10100E01011E  T 1F040404040404  U 1111111111110E  V 11111111110A04  W 1111111515150A  X 11110A040A1111
Y 11110A04040404  Z 1F01020408101F  0 0E11131519110E  1 040C040404040E  2 0E11010204081F  3 1F02040201110E
4 02060A121F0202  5 1F101E0101110E  6 0608101E11110E  7 1F010204080808  8 0E11110E11110E  9 0E11110F01020C
: 00040400040400  - 0000001F000000  / 00010204081000  . 00000000000606
"""  # seven rows per sign from the top, two hexadecimal digits per row, the highest bit on the left
_SIGNS = {" ": np.zeros((HEIGHT, WIDTH), bool)}
for _sign, _code in zip(_ROWS.split()[::2], _ROWS.split()[1::2], strict=True):
    _SIGNS[_sign] = np.array([[row >> (4 - bit) & 1 for bit in range(WIDTH)] for row in bytes.fromhex(_code)], bool)
KNOWN = frozenset(_SIGNS)


def dot_matrix(text: str) -> Mask:
    """The dots of one line of text, with an empty column between the signs."""
    gap = np.zeros((HEIGHT, 1), bool)
    return np.concatenate([part for sign in text for part in (_SIGNS[sign], gap)][:-1], axis=1)
