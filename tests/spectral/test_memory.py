import pytest

from nlsf.errors import MemoryBudgetError
from nlsf.spectral.memory import available_memory, require_memory


def test_what_fits_passes_and_what_does_not_says_how_much():
    assert available_memory() > 1e6
    require_memory(1000, None, "A list", "")
    with pytest.raises(
        MemoryBudgetError, match=r"A list would need about 2 GB, and 1 GB"
    ) as caught:
        require_memory(2 * 10**9, 10**9, "A list", "Ask for less.")
    assert caught.value.needed == 2 * 10**9
    assert caught.value.limit == 10**9
    assert isinstance(caught.value, MemoryError)
