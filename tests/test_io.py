"""Saved models: what is altered, cut off or interrupted is noticed, and the old model stays."""

from __future__ import annotations

import errno
import hashlib
import json
import os
import stat
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import unseen
from unseen import BiasModel, Completion, Given, Identity, LowRank, Observations, Ridge, Term
from unseen.exceptions import DataWarning, ModelFileError

X = np.array([[1.0, 2.0, np.nan], [2.0, np.nan, 4.0], [3.0, 1.0, 2.0]])


@pytest.fixture
def saved(tmp_path: Path) -> Path:
    path = tmp_path / "model"
    BiasModel().fit(X).save(path)
    return path


def manifest_of(path: Path) -> dict[str, Any]:
    return json.loads((path / "manifest.json").read_text())


def arrays_file(path: Path) -> Path:
    return path / manifest_of(path)["arrays"]["file"]


def test_directory_holds_a_manifest_and_one_arrays_file(saved: Path) -> None:
    names = sorted(p.name for p in saved.iterdir())
    assert len(names) == 2
    assert names[1] == "manifest.json"
    assert names[0].startswith("arrays-")
    assert names[0].endswith(".safetensors")


def test_both_files_are_readable_by_the_same_people(saved: Path) -> None:
    modes = {stat.S_IMODE(file.stat().st_mode) for file in saved.iterdir()}
    assert len(modes) == 1


def test_saving_again_replaces_the_model(saved: Path) -> None:
    other = BiasModel(reg=0.5).fit(X * 2)
    other.save(saved)
    assert len(list(saved.iterdir())) == 2
    np.testing.assert_array_equal(unseen.load(saved).row_factors_, other.row_factors_)


def test_ids_of_any_kind_survive(tmp_path: Path) -> None:
    for ids in (["a", "βeta", "日本 x"], [10**12, 5, 7]):
        cells = Observations.from_triples([0, 1, 2], [0, 1, 2], [1.0, 2.0, 3.0])
        from unseen.data import Vocabulary

        cells = Observations(cells._pattern, cells.values, Vocabulary(ids), Vocabulary(ids))
        model = BiasModel().fit(cells)
        model.save(tmp_path / "m")
        loaded = unseen.load(tmp_path / "m")
        assert loaded.row_ids_ == model.row_ids_
        assert list(loaded.col_ids_) == list(ids)
        (tmp_path / "m" / "manifest.json").unlink()
        for file in (tmp_path / "m").iterdir():
            file.unlink()


def test_compositions_with_nested_parts_survive(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    features = rng.standard_normal((3, 2))
    model = Completion([Term(Given(standardize=True), Identity(), LowRank(2), Ridge(0.5))], random_state=0)
    model.fit(X, row_features=features)
    model.save(tmp_path / "m")
    loaded = unseen.load(tmp_path / "m")
    np.testing.assert_array_equal(loaded.predict_new(features), model.predict_new(features))
    assert repr(loaded) == repr(model)


class OwnMap(Given):
    """A map from outside the package."""


def test_foreign_classes_load_only_by_name(tmp_path: Path) -> None:
    features = np.random.default_rng(0).standard_normal((3, 2))
    model = Completion([Term(OwnMap(), Identity(), LowRank(1))], random_state=0).fit(X, row_features=features)
    model.save(tmp_path / "m")
    with pytest.raises(ModelFileError, match=r"OwnMap.*custom"):
        unseen.load(tmp_path / "m")
    loaded = unseen.load(tmp_path / "m", custom=[OwnMap])
    np.testing.assert_array_equal(loaded.predict_new(features), model.predict_new(features))


@pytest.mark.parametrize("share", [0.0, 0.3, 0.99])
def test_truncated_files_are_refused(saved: Path, share: float) -> None:
    for file in (saved / "manifest.json", arrays_file(saved)):
        content = file.read_bytes()
        file.write_bytes(content[: int(share * len(content))])
        with pytest.raises(ModelFileError, match=file.name):
            unseen.load(saved)
        file.write_bytes(content)
    unseen.load(saved)


def test_one_changed_bit_is_noticed(saved: Path) -> None:
    file = arrays_file(saved)
    content = bytearray(file.read_bytes())
    content[-3] ^= 1
    file.write_bytes(content)
    with pytest.raises(ModelFileError, match="altered"):
        unseen.load(saved)


def edit(saved: Path, change: Any) -> None:
    manifest = manifest_of(saved)
    change(manifest)
    (saved / "manifest.json").write_text(json.dumps(manifest))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda m: m.update(format="other"), "does not describe"),
        (lambda m: m.update(format_version=99), "version 99"),
        (lambda m: m["arrays"].update(file="../../etc/passwd"), "arrays file"),
        (lambda m: m["arrays"].update(count=10**9), "at most"),
        (lambda m: m["model"].update({"$estimator": "system"}), "system"),
        (lambda m: m["model"].update({"$estimator": "os.system"}), "name of a class"),
        (lambda m: m["model"].update({"$estimator": "Observations"}), "not an estimator"),
        (lambda m: m["model"]["fitted"].update({"__class__": 1}), "learned attribute"),
        (lambda m: m["model"]["fitted"].update({"x_": {"$array": "nowhere"}}), "nowhere"),
        (lambda m: m["model"]["fitted"].update({"x_": {"$code": "1"}}), "unknown kind"),
        (lambda m: m["model"]["params"].update({"bogus": 1}), "bogus"),
        (lambda m: m.pop("model"), "model"),
        (lambda m: m.pop("arrays"), "arrays"),
    ],
)
def test_altered_manifests_are_refused(saved: Path, change: Any, message: str) -> None:
    edit(saved, change)
    with pytest.raises(ModelFileError, match=message):
        unseen.load(saved)


def test_deep_nesting_is_refused(saved: Path) -> None:
    text = (saved / "manifest.json").read_text()
    nested = "[" * 5000 + "]" * 5000
    (saved / "manifest.json").write_text(text.replace('"fitted": {', f'"fitted": {{ "x_": {nested},', 1))
    with pytest.raises(ModelFileError):
        unseen.load(saved)


def test_missing_and_foreign_directories(tmp_path: Path) -> None:
    with pytest.raises(ModelFileError, match=r"no manifest\.json"):
        unseen.load(tmp_path / "nothing")
    (tmp_path / "file").write_text("x")
    with pytest.raises(ModelFileError, match="is a file"):
        BiasModel().fit(X).save(tmp_path / "file")
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "notes.txt").write_text("mine")
    with pytest.raises(ModelFileError, match="other files"):
        BiasModel().fit(X).save(tmp_path / "other")
    assert (tmp_path / "other" / "notes.txt").read_text() == "mine"


def full_disk(*_: Any, **__: Any) -> None:
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


@pytest.mark.parametrize("step", ["model_files.write_arrays", "model_files.swap", "io._version"])
def test_a_full_disk_leaves_the_old_model(saved: Path, monkeypatch: pytest.MonkeyPatch, step: str) -> None:
    before = unseen.load(saved).row_factors_
    monkeypatch.setattr(f"unseen.{step}", full_disk)
    with pytest.raises(OSError, match="No space"):
        BiasModel(reg=0.1).fit(X * 3).save(saved)
    monkeypatch.undo()
    np.testing.assert_array_equal(unseen.load(saved).row_factors_, before)
    assert len(list(saved.iterdir())) == 2  # nothing half-written stays


KILL = """
import os, sys, numpy as np
import unseen.io
from unseen import BiasModel
X = np.array([[1.0, 2.0, np.nan], [2.0, np.nan, 4.0], [3.0, 1.0, 2.0]])
model = BiasModel(reg=0.1).fit(X * 3)
original = getattr({module}, "{name}")
def die(*args, **kwargs):
    if {after}: original(*args, **kwargs)
    os._exit(9)
{module}.{name} = die
model.save(sys.argv[1])
"""


@pytest.mark.parametrize(
    ("module", "name", "after"),
    [
        ("unseen.model_files", "write_arrays", True),
        ("unseen.io", "_version", False),
        ("os", "replace", False),
        ("os", "replace", True),
    ],
)
def test_a_kill_while_saving_leaves_a_whole_model(saved: Path, module: str, name: str, after: bool) -> None:
    before = unseen.load(saved).row_factors_
    script = KILL.format(module=module, name=name, after=after)
    done = subprocess.run([sys.executable, "-c", script, str(saved)], check=False)
    assert done.returncode == 9
    loaded = unseen.load(saved).row_factors_
    fresh = BiasModel(reg=0.1).fit(X * 3).row_factors_
    np.testing.assert_array_equal(loaded, fresh if after and name == "replace" else before)
    # The next save cleans up what the killed one left.
    BiasModel().fit(X).save(saved)
    assert len([p for p in saved.iterdir() if p.suffix == ".safetensors"]) == 1


def test_what_needs_pickle_is_refused(tmp_path: Path) -> None:
    model = BiasModel().fit(X)
    model.extra_ = lambda: None
    with pytest.raises(ModelFileError, match="without pickle"):
        model.save(tmp_path / "m")
    assert not (tmp_path / "m").exists()


def test_a_change_of_the_manifest_that_decodes_is_noticed(saved: Path) -> None:
    edit(saved, lambda manifest: manifest["model"]["params"].update(reg=123.0))
    with pytest.raises(ModelFileError, match=r"manifest\.json was altered"):
        unseen.load(saved)


def as_first_format(manifest: dict[str, Any]) -> None:
    manifest["format_version"] = 1
    manifest.pop("sha256")


def test_a_change_of_the_manifest_that_says_the_same_is_noticed(saved: Path) -> None:
    edit(saved, lambda _: None)  # laid out in another way
    with pytest.raises(ModelFileError, match=r"manifest\.json was altered"):
        unseen.load(saved)


def test_a_manifest_without_its_digest_is_refused(saved: Path) -> None:
    edit(saved, lambda manifest: manifest.pop("sha256"))
    with pytest.raises(ModelFileError, match=r"manifest\.json was altered"):
        unseen.load(saved)


def test_the_first_format_is_read_and_its_digest_compared(saved: Path) -> None:
    def with_digest(manifest: dict[str, Any], reg: float) -> None:
        as_first_format(manifest)
        manifest["sha256"] = hashlib.sha256(json.dumps(manifest, sort_keys=True).encode()).hexdigest()
        manifest["model"]["params"]["reg"] = reg

    edit(saved, lambda manifest: with_digest(manifest, manifest["model"]["params"]["reg"]))
    unseen.load(saved)
    edit(saved, lambda manifest: with_digest(manifest, 99.0))
    with pytest.raises(ModelFileError, match=r"manifest\.json was altered"):
        unseen.load(saved)


def test_models_without_a_digest_of_the_manifest_load_with_a_note(saved: Path) -> None:
    edit(saved, as_first_format)
    with pytest.warns(DataWarning, match="saved before manifests had a digest"):
        unseen.load(saved)


def test_a_mapped_model_answers_alike_and_is_checked(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    X = np.where(rng.random((12, 9)) < 0.6, rng.random((12, 9)), np.nan)
    model = unseen.MatrixFactorization(2, max_iter=3, random_state=0, reg=1.0, center="none").fit(X)
    model.save(tmp_path / "model")
    mapped = unseen.load(tmp_path / "model", mmap=True)
    assert mapped.row_factors_.base is not None
    assert not mapped.row_factors_.flags.writeable
    np.testing.assert_array_equal(mapped.fold_in(X), model.fold_in(X))
    np.testing.assert_array_equal(
        mapped.predict_entries([1, 2], [3, 4]), model.predict_entries([1, 2], [3, 4])
    )
    model.set_params(max_iter=1).fit(X).save(tmp_path / "model")  # what is mapped stays readable
    assert np.isfinite(mapped.row_factors_).all()
    arrays = next((tmp_path / "model").glob("*.safetensors"))
    content = bytearray(arrays.read_bytes())
    content[-1] ^= 1
    arrays.write_bytes(content)
    with pytest.raises(ModelFileError, match="altered"):
        unseen.load(tmp_path / "model", mmap=True)
