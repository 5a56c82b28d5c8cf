"""What the tests of downloads share: a server on this machine, and a cache of their own."""

import pytest
from local_server import PROXIES, served


@pytest.fixture(scope="session")
def server(tmp_path_factory):
    """One server for all tests, since stopping one takes half a second: its folder and its address."""
    folder = tmp_path_factory.mktemp("server")
    with served(folder) as address:
        yield folder, address


@pytest.fixture
def pages(server, tmp_path, monkeypatch):
    """An empty folder that is served, and its address; what is downloaded is kept in `tmp_path / "cache"`."""
    folder, address = server
    pages = folder / tmp_path.name
    pages.mkdir()
    monkeypatch.setattr("pooch.os_cache", lambda name: tmp_path / "cache" / name)
    for name in PROXIES:
        monkeypatch.delenv(name, raising=False)
    return pages, f"{address}/{pages.name}"
