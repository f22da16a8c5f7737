import numpy as np
import pytest

from nlsf.data.readers._tables import table
from nlsf.errors import FormatError


def test_lines_of_numbers():
    found = table("a.txt", b"1, 2\r\n-3,4\n5 , 6\n\n", kind=int, columns=2)
    assert found.dtype == np.int64
    assert found.tolist() == [[1, 2], [-3, 4], [5, 6]]
    assert table("a.txt", b" 1.5, 2e3\n.5, -1", kind=float).tolist() == [[1.5, 2000], [0.5, -1]]


def test_nothing():
    assert table("a.txt", b"\n", kind=int, columns=2).shape == (0, 2)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"1,2\n3\n", "a.txt, line 2 has 1 values; expected 2."),
        # As many numbers as two regular lines have.
        (b"1,2,3\n4\n", "a.txt, line 1 has 3 values; expected 2."),
        (b"1,2\n\n3,4\n", "a.txt, line 2 has 1 values; expected 2."),
        (b"\n1,2\n3,x\n", "a.txt, line 3: 'x' is not a whole number."),
        (b"1,2\n3,4.5\n", "a.txt, line 2: '4.5' is not a whole number."),
        (b"1,2\n3,\n", "a.txt, line 2: '' is not a whole number."),
        (b"1,2\n3,4 5\n", "a.txt, line 2: '4 5' is not a whole number."),
        (b"1,2\n\xff\xfe,4\n", "a.txt, line 2: '\ufffd\ufffd' is not a whole number."),
    ],
)
def test_the_first_bad_line_is_named(content, message):
    with pytest.raises(FormatError) as raised:
        table("a.txt", content, kind=int, columns=2)
    assert str(raised.value) == message
