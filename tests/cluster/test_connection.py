import ast
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

import nlsf
from nlsf.cluster import cluster_eigh, connect, connection
from nlsf.errors import ClusterError, ConfigError

SOURCE = Path(nlsf.__file__).parent


def test_without_dask_the_extra_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "distributed", None)
    with pytest.raises(ConfigError, match=r"needs Dask: pip install 'nlsf\[cluster\]'"):
        cluster_eigh([[[0, 1], [1, 0]]])


def test_only_the_functions_that_need_dask_import_it():
    texts = {path: path.read_text() for path in SOURCE.rglob("*.py")}
    mention = {p: text for p, text in texts.items() if "dask" in text or "distributed" in text}
    assert len(mention) >= 3
    for path, text in mention.items():
        for node in ast.parse(text).body:
            names = [alias.name for alias in getattr(node, "names", ())]
            names.append(getattr(node, "module", None) or "")
            assert not any(n.split(".")[0] in ("dask", "distributed") for n in names), path


@pytest.mark.parametrize("address", ["tcp://127.0.0.1:9", "nonsense", "host:port", ""])
def test_an_address_where_nobody_answers(address, monkeypatch):
    pytest.importorskip("distributed", reason="needs Dask: nlsf[cluster]")
    monkeypatch.setattr(connection, "_CONNECT", 0.2)
    with pytest.raises(ClusterError, match=f"No Dask scheduler answers at '{address}'"):
        cluster_eigh([], cluster=address)


def test_a_scheduler_without_workers(monkeypatch):
    distributed = pytest.importorskip("distributed", reason="needs Dask: nlsf[cluster]")
    monkeypatch.setattr(connection, "_WORKERS", 0.1)
    with (
        distributed.LocalCluster(n_workers=0, processes=False, dashboard_address=":0") as empty,
        pytest.raises(ClusterError, match="has no workers: 'dask worker "),
        connect(empty.scheduler_address),
    ):
        pass


def test_the_number_of_workers_is_that_of_a_local_cluster():
    pytest.importorskip("distributed", reason="needs Dask: nlsf[cluster]")
    with pytest.raises(ConfigError, match="at least 1 worker, not 0"), connect("local", workers=0):
        pass
    with pytest.raises(ConfigError, match="a running one has its own"), connect("a:1", workers=2):
        pass


def test_a_scheduler_that_goes_away():
    client = SimpleNamespace(scheduler=SimpleNamespace(address="tcp://10.0.0.5:8786"))
    with (
        pytest.raises(ClusterError, match=r"at tcp://10.0.0.5:8786 went away in the middle"),
        connection.watched(client),
    ):
        raise ConnectionResetError
