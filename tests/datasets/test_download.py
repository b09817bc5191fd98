import gzip
import hashlib
import io
import threading
import zipfile
from concurrent.futures import ThreadPoolExecutor
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import numpy as np
import pytest

from unseen.datasets import load_ca_grqc
from unseen.datasets import registry as registry_module
from unseen.datasets.download import fetch
from unseen.datasets.registry import SOURCES, Source, _unpacked, find_files, text_digest, user_data_home
from unseen.exceptions import DownloadError

CONTENT = np.random.default_rng(0).bytes(300_000)
DIGEST = hashlib.sha256(CONTENT).hexdigest()


class Handler(BaseHTTPRequestHandler):
    """Serves `server.files`; the path chooses how it misbehaves."""

    def do_GET(self):
        kind, _, name = self.path.strip("/").partition("/")
        self.server.requests.append((kind, self.headers.get("Range")))
        body = self.server.files.get(name)
        if kind == "ftp":
            self.send_response(302)
            self.send_header("Location", "ftp://127.0.0.1/file")
            self.end_headers()
            return
        if kind == "missing" or body is None:
            self.send_error(404)
            return
        start = 0
        wanted = self.headers.get("Range")
        if wanted and kind != "norange":
            start = int(wanted.removeprefix("bytes=").rstrip("-"))
            if start >= len(body):
                self.send_response(416)
                self.send_header("Content-Range", f"bytes */{len(body)}")
                self.end_headers()
                return
            self.send_response(206)
        else:
            self.send_response(200)
        rest = body[start:]
        if kind != "nolength":
            self.send_header("Content-Length", "many" if kind == "oddlength" else str(len(rest)))
        self.end_headers()
        self.wfile.write(rest[: len(rest) // 2] if kind == "cut" else rest)

    def log_message(self, *args):
        pass


@pytest.fixture
def server():
    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as running:
        running.files = {"file": CONTENT}
        running.requests = []
        running.base = f"http://127.0.0.1:{running.server_address[1]}"
        thread = threading.Thread(target=running.serve_forever, args=(0.01,), daemon=True)
        thread.start()
        yield running
        running.shutdown()
        thread.join()


def leftovers(folder):
    return sorted(path.name for path in folder.iterdir() if path.name.endswith(".part"))


@pytest.mark.parametrize("kind", ["ok", "nolength"])
def test_a_file_arrives_whole(server, tmp_path, kind):
    target = fetch(f"{server.base}/{kind}/file", tmp_path / "deep" / "file", sha256=DIGEST)
    assert target.read_bytes() == CONTENT
    assert leftovers(target.parent) == []
    assert target.stat().st_mode & 0o400


def test_a_wrong_digest_leaves_nothing(server, tmp_path):
    with pytest.raises(DownloadError, match=f"has sha256 {DIGEST}, expected 0000"):
        fetch(f"{server.base}/ok/file", tmp_path / "file", sha256="0000")
    assert list(tmp_path.iterdir()) == []


def test_a_missing_file_leaves_nothing(server, tmp_path):
    with pytest.raises(DownloadError, match=r"missing/file: the server answered 404"):
        fetch(f"{server.base}/missing/file", tmp_path / "file")
    assert list(tmp_path.iterdir()) == []


def test_a_cut_transfer_is_resumed(server, tmp_path):
    target = tmp_path / "file"
    with pytest.raises(DownloadError, match="ended after 150,000 of 300,000 bytes"):
        fetch(f"{server.base}/cut/file", target, sha256=DIGEST)
    assert not target.exists()
    assert leftovers(tmp_path) == ["file.part"]
    fetch(f"{server.base}/ok/file", target, sha256=DIGEST)
    assert target.read_bytes() == CONTENT
    assert server.requests[-1] == ("ok", "bytes=150000-")
    assert leftovers(tmp_path) == []


def test_a_server_that_cannot_resume_sends_all_again(server, tmp_path):
    (tmp_path / "file.part").write_bytes(CONTENT[:1000])
    assert fetch(f"{server.base}/norange/file", tmp_path / "file", sha256=DIGEST).read_bytes() == CONTENT


@pytest.mark.parametrize("begun", [b"something else", CONTENT[:-1] + b"?", CONTENT + b"longer"])
def test_a_beginning_of_another_file_is_dropped(server, tmp_path, begun):
    (tmp_path / "file.part").write_bytes(begun)
    assert fetch(f"{server.base}/ok/file", tmp_path / "file", sha256=DIGEST).read_bytes() == CONTENT


def test_a_finished_part_needs_no_more_bytes(server, tmp_path):
    (tmp_path / "file.part").write_bytes(CONTENT)
    assert fetch(f"{server.base}/ok/file", tmp_path / "file", sha256=DIGEST).read_bytes() == CONTENT
    assert server.requests == [("ok", "bytes=300000-")]


@pytest.mark.parametrize("kind", ["ok", "nolength"])
def test_a_file_that_is_too_large_is_refused(server, tmp_path, kind):
    with pytest.raises(DownloadError, match="100,000"):
        fetch(f"{server.base}/{kind}/file", tmp_path / "file", max_bytes=100_000)
    assert list(tmp_path.iterdir()) == []


def test_many_at_once(server, tmp_path):
    with ThreadPoolExecutor(8) as pool:
        jobs = [
            pool.submit(fetch, f"{server.base}/ok/file", tmp_path / "file", sha256=DIGEST) for _ in range(16)
        ]
        assert all(job.result().read_bytes() == CONTENT for job in jobs)
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


def test_other_addresses_and_dead_servers(tmp_path):
    with pytest.raises(DownloadError, match="only http and https"):
        fetch("file:///etc/hostname", tmp_path / "file")
    with pytest.raises(DownloadError, match="cannot fetch"):
        fetch("http://127.0.0.1:9/file", tmp_path / "file", timeout=2)


# --- data sets ----------------------------------------------------------------------------------


def test_digests_of_text_ignore_only_line_ends(tmp_path):
    def digest(text, **options):
        (tmp_path / "t").write_bytes(text)
        return text_digest(tmp_path / "t", **options)

    assert digest(b"a\n\nb\n") == digest(b"a\r\n\r\nb\r\n") == digest(b"a\n\nb") == digest(b"a\n\nb\n\n\n")
    assert digest(b"a\nb\n") != digest(b"a\n\nb\n")
    assert digest(b"a\nb\n") != digest(b"a\nb \n")
    assert digest(b"# x\na\n", comments=b"#") == digest(b"a\n# y\n", comments=b"#")
    assert digest(b"# x\na\n") != digest(b"a\n")


def test_what_is_missing_is_explained(tmp_path, monkeypatch):
    monkeypatch.delenv("UNSEEN_DATA", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    for name, source in SOURCES.items():
        with pytest.raises(DownloadError) as caught:
            find_files(name)
        message = str(caught.value)
        assert str(user_data_home() / source.folder) in message
        assert source.origin in message
        assert all(file in message for file in source.files if file not in source.optional)
        assert ("download=True" in message) == (source.address is not None)
        if source.address is None:
            with pytest.raises(DownloadError, match="no public address"):
                find_files(name, download=True)


def test_changed_files_are_refused(tmp_path):
    folder = tmp_path / "letter"
    folder.mkdir()
    (folder / "letter-recognition.data").write_text("Letter,1\nA,2\n")
    with pytest.raises(DownloadError, match=r"letter-recognition\.data does not have the expected content"):
        find_files("letter", data_home=tmp_path)
    (folder / "letter-recognition.data").unlink()
    (folder / "letter-recognition.data.gz").write_bytes(b"\x1f\x8b nonsense")
    with pytest.raises(DownloadError, match="damaged"):
        find_files("letter", data_home=tmp_path)


def replace_source(monkeypatch, name, **changes):
    monkeypatch.setitem(SOURCES, name, Source(**{**vars(SOURCES[name]), **changes}))


def test_a_graph_is_fetched_once(server, tmp_path, monkeypatch):
    import gzip

    server.files["ca-GrQc.txt.gz"] = gzip.compress(b"# header\r\n5\t7\r\n7\t5\r\n7\t7\r\n7\t9\r\n1\t2\r\n")
    replace_source(monkeypatch, "ca_grqc", address=f"{server.base}/ok/ca-GrQc.txt.gz")
    with pytest.raises(DownloadError, match="does not have the expected content"):
        load_ca_grqc(data_home=tmp_path / "other", download=True)
    digest = hashlib.sha256(b"5\t7\n7\t5\n7\t7\n7\t9\n1\t2\n").hexdigest()
    replace_source(monkeypatch, "ca_grqc", files={"CA-GrQc.txt": digest})
    graph = load_ca_grqc(data_home=tmp_path, download=True)
    assert graph.observations.row_ids.values.tolist() == [5, 7, 9]
    assert graph.edges.tolist() == [[0, 1], [1, 2]]
    count = len(server.requests)
    assert load_ca_grqc(data_home=tmp_path, download=True).edges.tolist() == graph.edges.tolist()
    assert len(server.requests) == count


def test_ml100k_is_unpacked_and_its_folds_are_noted(server, tmp_path, monkeypatch):
    tests = {f"u{number}": [] for number in range(1, 6)} | {"ua": [], "ub": []}
    lines = [f"{1 + i % 2}\t{1 + i // 2}\t{1 + i % 5}\t{880000000 + i}" for i in range(10)]
    for i, line in enumerate(lines):
        tests[f"u{1 + i % 5}"].append(line)
    tests["ua"], tests["ub"] = lines[:2], lines[1:4]
    members = {
        "u.data": "\n".join(lines) + "\n",
        "u.user": "1|24|M|artist|0\n2|30|F|doctor|0\n",
        "u.item": "".join(
            f"{i}|Café {i}|{'01-Jan-199' + str(i) if i < 5 else ''}|||0|1\n" for i in range(1, 6)
        ),
        "u.genre": "unknown|0\nAction|1\n\n",
        "u.occupation": "artist\ndoctor\n",
    } | {f"{name}.test": "\n".join(rows) + "\n" for name, rows in tests.items()}
    archive = io.BytesIO()
    with zipfile.ZipFile(archive, "w") as pack:
        for name, text in members.items():
            pack.writestr(f"ml-100k/{name}", text.encode("latin-1"))
    server.files["ml-100k.zip"] = archive.getvalue()
    replace_source(monkeypatch, "ml100k", address=f"{server.base}/ok/ml-100k.zip")
    monkeypatch.setattr(registry_module, "text_digest", lambda path, comments: "any")
    replace_source(monkeypatch, "ml100k", files=dict.fromkeys(SOURCES["ml100k"].files, "any"))
    from unseen.datasets import load_ml100k

    data = load_ml100k(data_home=tmp_path, download=True)
    assert data.observations.shape == (2, 5)
    line = data.cells["timestamp"] - 880000000
    assert data.cells["fold"].tolist() == (1 + line % 5).tolist()
    assert sorted(line[data.cells["ua_test"] == 1]) == [0, 1]
    assert sorted(line[data.cells["ub_test"] == 1]) == [1, 2, 3]
    assert data.row_features.tolist() == [[24, 0, 1, 1, 0], [30, 1, 0, 0, 1]]
    assert data.col_features[:, -1].tolist() == [1991, 1992, 1993, 1994, 1992.5]
    assert data.extras["titles"][0] == "Café 1"
    assert sorted(path.name for path in (tmp_path / "ml100k").iterdir()) == sorted(SOURCES["ml100k"].files)


@pytest.mark.parametrize("body", [b"not a zip", b""])
def test_an_archive_that_is_none_is_refused(server, tmp_path, monkeypatch, body):
    server.files["ml-100k.zip"] = body
    replace_source(monkeypatch, "ml100k", address=f"{server.base}/ok/ml-100k.zip")
    with pytest.raises(DownloadError, match="does not hold what was expected"):
        find_files("ml100k", data_home=tmp_path, download=True, progress=False)
    assert list((tmp_path / "ml100k").iterdir()) == []


@pytest.mark.parametrize(("kind", "message"), [("ftp", "leads to ftp"), ("oddlength", "'many' bytes")])
def test_servers_that_mislead_are_refused(server, tmp_path, kind, message):
    with pytest.raises(DownloadError, match=message):
        fetch(f"{server.base}/{kind}/file", tmp_path / "file")


def test_a_link_in_place_of_the_part_is_not_followed(server, tmp_path):
    precious = tmp_path / "precious"
    precious.write_bytes(b"mine")
    (tmp_path / "file.part").symlink_to(precious)
    fetch(f"{server.base}/ok/file", tmp_path / "file", sha256=DIGEST)
    assert precious.read_bytes() == b"mine"
    assert (tmp_path / "file").read_bytes() == CONTENT


def test_texts_that_grow_without_end_are_refused(tmp_path, monkeypatch):
    monkeypatch.setattr("unseen.datasets.registry.MOST_UNPACKED", 1000)
    (tmp_path / "bomb.gz").write_bytes(gzip.compress(b"x" * 100_000))
    with pytest.raises(DownloadError, match="beyond all measure"):
        text_digest(tmp_path / "bomb.gz")
    with zipfile.ZipFile(tmp_path / "bomb.zip", "w", zipfile.ZIP_DEFLATED) as pack:
        pack.writestr("file", b"x" * 100_000)
    with zipfile.ZipFile(tmp_path / "bomb.zip") as pack, pytest.raises(ValueError, match="more than"):
        _unpacked(pack, "file")
