"""The public data sets: which files, with which content, from where."""

from __future__ import annotations

import gzip
import hashlib
import os
import sys
import zipfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from unseen.data.streaming import PathLike
from unseen.datasets.download import fetch, write_whole
from unseen.docstrings import Descriptions
from unseen.exceptions import DownloadError

__all__ = ["FILES", "SOURCES", "Source", "find_files", "text_digest", "user_data_home"]

FILES: Descriptions = {
    "data_home": ("path-like, optional", "Folder of the data sets."),
    "download": ("bool", "Nobody serves exactly these files; the error says where the data comes from."),
}
"""What loaders of files take."""


@dataclass(frozen=True)
class Source:
    """A data set as files in a folder of its own.

    Attributes
    ----------
    folder : str
        Name of the folder under the data home.
    files : mapping of str to str
        Files without ``.gz``, and the sha256 of their lines (see `text_digest`).
    origin : str
        Who publishes the data.
    address : str or None
        Where it can be fetched from; None where nobody serves exactly these files.
    convert : callable or None
        Turns what was fetched into the files.
    comments : bytes
        Lines that start so are no part of the content.
    optional : frozenset of str
        Files that may be absent.
    """

    folder: str
    files: Mapping[str, str]
    origin: str
    address: str | None = None
    convert: Callable[[Path, Path], None] | None = None
    comments: bytes = b""
    optional: frozenset[str] = field(default_factory=frozenset)


def user_data_home() -> Path:
    """The folder for downloaded data of this user, by the custom of the platform."""
    if sys.platform == "win32":
        base = Path(os.environ.get("LOCALAPPDATA", Path.home() / "AppData" / "Local"))
    elif sys.platform == "darwin":
        base = Path.home() / "Library" / "Caches"
    else:
        base = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return base / "unseen"


def find_files(
    name: str, *, data_home: PathLike | None = None, download: bool = False, progress: bool = True
) -> dict[str, Path]:
    """Find the files of a data set and check their content.

    Parameters
    ----------
    name : str
        Key of `SOURCES`.
    data_home : path-like, optional
        Folder that holds the folder of the data set. By default ``$UNSEEN_DATA`` and then the
        user's own data home are looked at.
    download : bool, default=False
        Fetch what is missing, into `data_home` or the user's own data home.
    progress : bool, default=True
        Show a progress bar while fetching.

    Returns
    -------
    dict of str to Path
        Each file, plain or gzipped; optional files only where they are.

    Raises
    ------
    DownloadError
        If files are missing and cannot be fetched, or do not have the expected content.
    """
    source = SOURCES[name]
    if data_home is not None:
        homes = [Path(data_home)]
    else:
        homes = [Path(home) for home in (os.environ.get("UNSEEN_DATA"),) if home] + [user_data_home()]
    for home in homes:
        if found := _present(source, home / source.folder):
            return found
    if not download:
        raise DownloadError(_advice(name, source, homes))
    if source.address is None or source.convert is None:
        raise DownloadError(
            f"{name} cannot be fetched: no public address is known that serves exactly these files. "
            + _advice(name, source, homes)
        )
    folder = homes[-1] / source.folder
    archive = fetch(source.address, folder / source.address.rsplit("/", 1)[-1], progress=progress)
    try:
        source.convert(archive, folder)
    except (KeyError, ValueError, OSError, zipfile.BadZipFile) as error:
        archive.unlink(missing_ok=True)
        raise DownloadError(f"{source.address} does not hold what was expected: {error}.") from error
    found = _present(source, folder)
    if not found:
        raise DownloadError(f"{source.address} does not hold all of {', '.join(source.files)}.")
    return found


def _present(source: Source, folder: Path) -> dict[str, Path]:
    """All files of a source with checked content; empty if one is missing."""
    found = {}
    for file, digest in source.files.items():
        path = next((p for p in (folder / file, folder / f"{file}.gz") if p.is_file()), None)
        if path is None:
            if file in source.optional:
                continue
            return {}
        if text_digest(path, source.comments) != digest:
            raise DownloadError(
                f"{path} does not have the expected content (sha256 of its lines is not {digest}); "
                "remove it, or put the right file there."
            )
        found[file] = path
    return found


def _advice(name: str, source: Source, homes: list[Path]) -> str:
    wanted = ", ".join(file for file in source.files if file not in source.optional)
    places = " or ".join(str(home / source.folder) for home in homes)
    fetching = f" download=True fetches it from {source.address}." if source.address else ""
    return (
        f"{name} was not found in {places}.{fetching} The files wanted there, plain or with .gz, are "
        f"{wanted}. The data comes from {source.origin}. data_home= or the variable UNSEEN_DATA may name "
        "another place."
    )


def text_digest(path: Path, comments: bytes = b"") -> str:
    """Sha256 of the lines of a plain or gzipped text; kind of line ends and blank last lines do not count.

    Parameters
    ----------
    path : Path
        The file.
    comments : bytes, optional
        Lines that start so are left out.

    Returns
    -------
    str
    """
    digest = hashlib.sha256()
    blank = 0
    opener = gzip.open if path.suffix == ".gz" else open
    try:
        with opener(path, "rb") as handle:
            while line := handle.readline(MOST_UNPACKED):
                if len(line) == MOST_UNPACKED or handle.tell() > MOST_TEXT:
                    raise DownloadError(f"{path} grows beyond all measure when it is unpacked; remove it.")
                text = line.rstrip(b"\r\n")
                if comments and text.startswith(comments):
                    continue
                if not text:
                    blank += 1
                    continue
                digest.update(b"\n" * blank + text + b"\n")
                blank = 0
    except (EOFError, gzip.BadGzipFile) as error:
        raise DownloadError(
            f"{path} is damaged ({error}); remove it, or put the right file there."
        ) from error
    return digest.hexdigest()


MOST_UNPACKED = 64 << 20
"""Bytes of a file of an archive, or of a line of a text; all that we know have far fewer."""
MOST_TEXT = 1 << 36


def _convert_graph(archive: Path, folder: Path) -> None:
    """SNAP serves the gzipped edge list itself, under a name in other letters."""
    proper = folder / archive.name.replace("ca-", "CA-")
    if proper != archive:
        os.replace(archive, proper)


def _convert_ml100k(archive: Path, folder: Path) -> None:
    """Unpack the tables, and note for each rating which of the published test sets hold it."""
    with zipfile.ZipFile(archive) as pack:
        for name in ("u.data", "u.user", "u.item", "u.genre", "u.occupation"):
            write_whole(folder / name, _unpacked(pack, f"ml-100k/{name}"))
        key = _ml100k_keys(_unpacked(pack, "ml-100k/u.data"))
        fold = np.zeros(key.size, dtype=np.int64)
        for number in range(1, 6):
            fold[np.isin(key, _ml100k_keys(_unpacked(pack, f"ml-100k/u{number}.test")))] = number
        last = [np.isin(key, _ml100k_keys(_unpacked(pack, f"ml-100k/{name}.test"))) for name in ("ua", "ub")]
    rows = np.column_stack([fold, *last]).astype(np.int64)
    lines = ["fold,ua_test,ub_test", *(",".join(map(str, row)) for row in rows.tolist())]
    write_whole(folder / "splits.csv", ("\n".join(lines) + "\n").encode())
    archive.unlink()


def _unpacked(pack: zipfile.ZipFile, name: str) -> bytes:
    """A file of an archive, unless it grows beyond all measure."""
    with pack.open(name) as handle:
        content = handle.read(MOST_UNPACKED + 1)
    if len(content) > MOST_UNPACKED:
        raise ValueError(f"{name} has more than {MOST_UNPACKED:,} bytes")
    return content


def _ml100k_keys(table: bytes) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    users, items = np.loadtxt(table.decode().splitlines(), dtype=np.int64, usecols=(0, 1), unpack=True)
    return np.asarray(users * 10_000 + items)


_MULAN = "the data folder of the Mulan project (ARFF files, converted to the sparse text format)"

SOURCES: dict[str, Source] = {
    "ml100k": Source(
        "ml100k",
        {
            "u.data": "06416e597f82b7342361e41163890c81036900f418ad91315590814211dca490",
            "u.user": "f120e114da2e8cf314fd28f99417c94ae9ddf1cb6db8ce0e4b5995d40e90e62c",
            "u.item": "553841ebc7de3a0fd0d6b62a204ea30c1e651aacfb2814c7a6584ac52f2c5701",
            "u.genre": "48c0197cf7aa88ff61797dfe07ed2ffd3c5555c8b9f9430b738c053525461061",
            "u.occupation": "cd5fbec9afe345d993a62fc7817df1a4a9079c4feb267b3118763b8fd942137d",
            "splits.csv": "4d9f076795c8ffe1a6c839f2e5a17c873f3ee6b817e3daff1cf638039383cad7",
        },
        "GroupLens Research (MovieLens 100K)",
        address="https://files.grouplens.org/datasets/movielens/ml-100k.zip",
        convert=_convert_ml100k,
    ),
    "bibtex": Source(
        "bibtex",
        {
            "train.txt": "b4ea0ea4064004fa7b9a83fba84563ac3cac1971462a3633deb58f5d968f8d54",
            "test.txt": "8362a26a8a35e23a9da6f271ff4ed077152907cb11ee4646daf34d21cce5b32b",
            "feature_names.txt": "228aaf53fef8e30f3042e0f2fe8ec9a19e88e85403e41a8ac53424128c1b6896",
            "label_names.txt": "1350ec51060650137a0d7496560f8c4601c0483d47e291c5a26e3a3968effae4",
            "sleec_train_rows.txt": "330ba2843bbaef7319f5cf3d3755c26288b59092e4fd853a70c009170016bd4e",
            "sleec_test_rows.txt": "3c9be5607452b13552402b20341cfa7e3f25c549f45bacc3e1e3843b44a20e4e",
            "splits10_train_rows.txt": "5d1a6f82cab2aef076d7dda41c5ab83198d1d94489ac3fd9c820bdb612a610ac",
            "splits10_test_rows.txt": "34816b148ecb52dd9ca8aa24c402c0181930665147039f835c163452bae9ae40",
        },
        _MULAN,
        optional=frozenset(
            {
                "sleec_train_rows.txt",
                "sleec_test_rows.txt",
                "splits10_train_rows.txt",
                "splits10_test_rows.txt",
            }
        ),
    ),
    "delicious": Source(
        "delicious",
        {
            "train.txt": "005c44b460140df1b317343d71a983e59634b754be2093aac2ad624a709bd061",
            "test.txt": "3e077a8c72dce2f850abfbf551dbefdb6de7bbe3d4da286ac6ea49b87183fb76",
            "feature_names.txt": "e63471d4d2cdaed7ca8e4d3732e2a771448cc8705f14c8ab8b7a2f015c83c69e",
            "label_names.txt": "5e54598c3cf746c696ab6684d05edf5d1baf0066bf62fa4699b7e2ceca07c033",
        },
        _MULAN,
    ),
    "corel5k": Source(
        "corel5k",
        {
            "train.txt": "016320721f18910105ee559efa73008ec3c04eee1341c60d99f9728975f769aa",
            "test.txt": "07b48ecda7bd6637020c4ba8b6941a35655337bf45199ec61f3a3396df6bd897",
            "feature_names.txt": "ced2f13548215683f87a799928bab7cd64077fe4aae0d481231be5fd4241363f",
            "label_names.txt": "284ff046255312cb94d84699768ff8aca877350e7cc3b6515c61caaba4a2d3ff",
        },
        _MULAN,
    ),
    "rcv1_subset": Source(
        "rcv1sub1-top944",
        {
            "train.txt": "d8eaa4b38ce29e6798ddd52f1e57aa32918ec60eb6f3c01f9fbc3b17b22b3f03",
            "test.txt": "c48a568c320981da1445fd9baf22accc1e2ce4ead64743e78e80927381969899",
        },
        "the ZesenChen/multi-label-dataset repository (rcv1subset1_top944.mat, converted)",
    ),
    "mediamill_subset": Source(
        "mediamill-small",
        {
            "all.txt": "b64d2b69202495d3193d626e56ccaf2b98388722215f57bd6204afa5d9572686",
        },
        "the lehneres/edu.uni-tuebingen repository (mediamill_small.arff, converted)",
    ),
    "ca_grqc": Source(
        "ca-grqc",
        {
            "CA-GrQc.txt": "2ed088bf080ff42ef795be88ea54e454fda0fed42f39e3b2dbca128e5657fb04",
        },
        "the Stanford SNAP collection (ca-GrQc)",
        address="https://snap.stanford.edu/data/ca-GrQc.txt.gz",
        convert=_convert_graph,
        comments=b"#",
    ),
    "ca_hepph": Source(
        "ca-hepph",
        {
            "CA-HepPh.txt": "3b6c970505094479bf23eb0714e5b25ef01854d502d62bbece18f67a65bca2e5",
        },
        "the Stanford SNAP collection (ca-HepPh)",
        address="https://snap.stanford.edu/data/ca-HepPh.txt.gz",
        convert=_convert_graph,
        comments=b"#",
    ),
    "yelp2013": Source(
        "yelp-2013",
        {
            "ratings.csv": "6c90f053e992c49eb4fff4b8713e49e003485ba93628b1a0c89b75ddc704b8ba",
            "items.csv": "68923e0449f7d1c16c645b7b5326b49134893c9a8050367af0f6aa09285d9b4b",
        },
        "the Yelp Phoenix academic dataset of 2013 (ids renumbered, in order of date)",
    ),
    "yelp_3zones": Source(
        "yelp-3zones",
        {
            "ratings.csv": "7cb2a0ec6bee7ab174e218a9830751f27831dba3a31a3d7cb39ea52552a28980",
            "user_map.csv": "e5eb5380b8c2602ffb2239f78f8c43a949d48e56d1923dfb54a10c2dc92f44cb",
            "item_map.csv": "ce0da360210e86f3527f42b9ff32a4275d2ba89d7c673bbb98b2b7542e1e980e",
        },
        "the Yelp Phoenix academic dataset of 2013 (three zones cut out, ids renumbered)",
    ),
    "filmtrust": Source(
        "filmtrust",
        {
            "ratings.csv": "3cbe12dfadad792a3d24fe8a368280e22012a93c17448e0bef6daa6f349445e1",
            "trust.csv": "f3c177427326f00c051dcf120f23866cd858287afb3198b11bbf992560e56b7b",
        },
        "the FilmTrust crawl of 2011, distributed with the guoguibing/librec repository",
    ),
    "ciao": Source(
        "ciao",
        {
            "ratings.csv": "4689f3a46802245b82d47321384bdfcdb29abaae0519ee08ef88aefaa76b5087",
        },
        "the time-stamped Ciao data of Tang et al. (2012), ids renumbered",
    ),
    "letter": Source(
        "letter",
        {
            "letter-recognition.data": "f4011dda0ec444af1a1fc1290f92b431b4c00fd41b977edfe7fc16be4efec233",
        },
        "the UCI repository (Letter Recognition), with a line of column names added",
    ),
    "segment": Source(
        "segment",
        {
            "segment.csv": "d8845cf5ab6738e136069b37d4587d41553739088639c50ac97672d4aa04f366",
        },
        "the UCI repository (Image Segmentation), as packed with river",
    ),
    "covtype": Source(
        "covtype",
        {
            "covtype_balanced15120.csv": "00a487be2ecc8687167d91d1c3975d3e2c62659a32719333592dba49e99a4abf",
        },
        "the UCI repository (Covertype), the balanced sample of the Kaggle competition on it",
    ),
    "mushroom": Source(
        "mushroom",
        {
            "agaricus-lepiota.csv": "fe86f093fef09d69f6cf0bdf073342ec153037b6ff8a324790ab4bdb926e0ebf",
        },
        "the UCI repository (Mushroom), with a line of column names added",
    ),
    "nci_dream": Source(
        "nci-dream",
        {
            "drug_response.csv": "290894d5ecc3b21c285015bfd11ff99f71b05cfd770862fc81b7b673d5376da2",
            "rnaseq_calls.csv": "035debe12dd80e1c6f00ebe7365a5e9e5edde9d8019b44ea0ad8663374192c44",
        },
        "the DREAM 7 drug sensitivity challenge (Synapse syn2785778)",
    ),
}
