import pytest


@pytest.fixture(scope="package")
def client():
    """Two worker processes, for all tests of this folder."""
    pytest.importorskip("distributed", reason="needs Dask: nlsf[cluster]")
    from nlsf.cluster import connect

    with connect("local", workers=2) as client:
        yield client
