"""Nobody is let in: damaged files are refused, forged ones are refused or answer like a model."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import unseen
from tests.hostile import forge, zoo
from tests.hostile.saving import in_a_process
from tests.test_public_api import ESTIMATORS
from unseen import learned
from unseen.distributed import DiskCompleter
from unseen.encoding import refuse_padding
from unseen.exceptions import DataWarning, ModelFileError
from unseen.solvers import ALS
from unseen.solvers.gibbs_noise import NoiseSamples

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")


class Hidden(ALS):
    """A solver that claims to be the library's, which does not know its name."""


Hidden.__module__ = "unseen.solvers.als"
Parts = tuple[dict[str, Any], dict[str, Any], bytes]


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Saved models of all kinds."""
    directory = tmp_path_factory.mktemp("models")
    forge.saved_zoo(directory)
    return directory


def test_every_estimator_is_there() -> None:
    there = {type(zoo.fitted(name)).__name__ for name in zoo.MODELS}
    wanted = {cls.__name__ for cls in ESTIMATORS.values() if hasattr(cls, "save")}
    wanted -= {"MultiLabelClassifier", "FactoredClassifier", "WeightedClassifier", "LinearLabels"}
    if "DXML" not in zoo.MODELS:  # PyTorch is not there
        wanted -= {"DXML"}  # bases for classes of one's own
    assert wanted - there == set()


def test_the_tables_know_every_learned_attribute() -> None:
    unknown = {}
    for name in zoo.MODELS:
        model = zoo.fitted(name)
        known = set(learned.OTHERS).union(
            *(learned.NEEDED.get(cls.__name__, {}) for cls in type(model).__mro__)
        )
        unknown[name] = [key for key in vars(model) if key.endswith("_") and key not in known]
    assert {name: keys for name, keys in unknown.items() if keys} == {}


@pytest.mark.parametrize("name", zoo.MODELS)
def test_what_is_saved_is_loaded(models: Path, name: str) -> None:
    model, back = zoo.fitted(name), unseen.load(models / name.replace(" ", "-"))
    assert type(back) is type(model)
    for attribute in ("row_factors_", "col_factors_", "coef_", "embedding_"):
        if isinstance(getattr(model, attribute, None), np.ndarray):
            np.testing.assert_array_equal(getattr(back, attribute), getattr(model, attribute))


def test_what_could_not_be_found_again_is_not_saved(tmp_path: Path) -> None:
    model = copy.deepcopy(zoo.fitted("BiasModel"))
    model.solver_ = Hidden()
    with pytest.raises(ModelFileError, match="Hidden"):
        model.save(tmp_path / "m")


def test_damaged_models_are_refused(models: Path) -> None:
    found = in_a_process("attack", models, "forge", kind="damaged", first=0, count=126)
    assert found == {"refused": 126}


def test_forged_models_are_refused_or_answer(models: Path) -> None:
    found = in_a_process("attack", models, "forge", kind="forged", first=0, count=126)
    assert found["answered"] > 10  # else nothing was tried
    assert found["refused"] + found["answered"] == 126, found


def test_an_edit_would_pass_without_the_checks(models: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = models / "MatrixFactorization"
    parts = forge.parts_of(path)
    fitted = parts[0]["model"]["fitted"]
    fitted["row_factors_"], fitted["col_factors_"] = fitted["col_factors_"], fitted["row_factors_"]
    forge.write(models / "swapped", *parts)
    with pytest.raises(ModelFileError, match="col_factors_"):
        unseen.load(models / "swapped")
    monkeypatch.setattr("unseen.encoding.check_model", lambda model: {})
    unseen.load(models / "swapped")


def renamed(change: Callable[[dict[str, Any]], None]) -> Callable[[Parts], Parts]:
    def forged(parts: Parts) -> Parts:
        change(parts[0]["model"])
        return parts

    return forged


def with_long_text(parts: Parts) -> Parts:
    """Many short ids and a long one: little in the file, much in memory."""
    manifest, header, body = parts
    count, longest = 200_000, 20_000
    texts = [b"%d" % number for number in range(count - 1)] + [b"x" * longest]
    ends = np.cumsum([len(text) for text in texts], dtype=np.int64).tobytes()
    name = manifest["model"]["fitted"]["row_ids_"]["$vocabulary"]["$text"]
    manifest["model"]["fitted"]["row_ids_"]["$vocabulary"]["shape"] = [count]
    for key, dtype, content in ((f"{name}.ends", "I64", ends), (name, "U8", b"".join(texts))):
        width = 8 if dtype == "I64" else 1
        place = [len(body), len(body) + len(content)]
        header[f"new{key}"] = {"dtype": dtype, "shape": [len(content) // width], "data_offsets": place}
        body += content
    manifest["model"]["fitted"]["row_ids_"]["$vocabulary"]["$text"] = f"new{name}"
    return manifest, header, body


@pytest.mark.parametrize(
    ("name", "change", "message"),
    [
        ("BiasModel", with_long_text, "texts of up to 20000 bytes"),
        ("Katz", renamed(lambda m: m["fitted"].update(length_=10**12)), "length_"),
        ("BiasModel", renamed(lambda m: m["fitted"].pop("row_factors_")), "without row_factors_"),
        (
            "BiasModel",
            renamed(lambda m: m["fitted"].update(row_bias_=m["fitted"]["row_factors_"])),
            "already",
        ),
        ("IMC", renamed(lambda m: m["fitted"].update(n_row_features_in_=2**40)), "n_row_features_in_|size"),
        ("RidgeOvA", renamed(lambda m: m["fitted"].update(n_labels_=3)), "not what it must be"),
        ("ExMLDS", renamed(lambda m: m["params"].update(metric="far")), "metric must be one of"),
        ("MixedLinear", renamed(lambda m: m["fitted"].update(rank_=3)), "factors"),
        ("MatrixFactorization", renamed(lambda m: m["fitted"].clear()), "without n_features_in_|nothing"),
    ],
)
def test_forged_models(
    models: Path, tmp_path: Path, name: str, change: Callable[[Parts], Parts], message: str
) -> None:
    forge.write(tmp_path / "forged", *change(forge.parts_of(models / name)))
    with pytest.raises(ModelFileError, match=message):
        unseen.load(tmp_path / "forged")


@pytest.mark.parametrize(
    ("name", "changed"),
    [
        ("BayesianMF", {"deviations": np.zeros((zoo.N, 4, 1), np.float16)}),
        ("BayesianMF", {"deviations": np.zeros((zoo.N - 1, 4, 3), np.float16)}),
        ("BayesianMF", {"noise": np.ones(3)}),
        ("BayesianMF", {"coordinates": (9, False, False)}),
        ("BayesianMF", {"row_prior": 3}),
        ("BayesianMF", {"scale": 0.0}),
        ("BayesianMF", {"varying": NoiseSamples(np.ones((3, zoo.N)), np.ones((3, zoo.M)), np.ones(3))}),
        ("BayesianMF", {"varying": NoiseSamples(np.zeros((4, zoo.N)), np.ones((4, zoo.M)), np.ones(4))}),
        ("Completion averaged", {"noise": np.ones(3)}),
        ("Completion averaged", {"widths": [7, 7]}),
    ],
)
def test_samples_that_do_not_fit_the_factors_are_refused(
    tmp_path: Path, name: str, changed: dict[str, Any]
) -> None:
    model = copy.deepcopy(zoo.fitted(name))
    model.solver_.posterior_ = replace(model.solver_.posterior_, **changed)
    with pytest.raises(ModelFileError):
        model.save(tmp_path / "m")


def test_ids_that_could_not_be_loaded_are_not_saved(tmp_path: Path) -> None:
    model = copy.deepcopy(zoo.fitted("BiasModel"))
    model.save(tmp_path / "m")
    with pytest.raises(ModelFileError, match="texts of up to"):
        refuse_padding(np.array([1] * 200_000 + [20_000]), "ids")
    model.col_bias_ = model.col_bias_[1:]
    with pytest.raises(ModelFileError, match="col_bias_"):
        model.save(tmp_path / "m")
    unseen.load(tmp_path / "m")


# -- checkpoints ----------------------------------------------------------------------


@pytest.fixture(scope="module")
def data() -> Any:
    pandas = pytest.importorskip("pandas")
    rng = np.random.default_rng(0)
    return pandas.DataFrame(
        {"row": rng.integers(0, 60, 500), "col": rng.integers(0, 40, 500), "value": rng.standard_normal(500)}
    ).drop_duplicates(["row", "col"])


def going_on(data: Any, place: Path, max_iter: int = 4, resume: bool = True) -> Any:
    model = unseen.MatrixFactorization(3, reg=1.0, random_state=0, max_iter=max_iter, tol=0)
    completer = DiskCompleter(model, n_blocks=2, checkpoint=str(place), resume=resume)
    try:
        return completer.fit(data).to_local()
    finally:
        completer.close()


def test_a_fit_goes_on_from_what_was_written_or_not_at_all(data: Any, tmp_path: Path) -> None:
    place = tmp_path / "states"
    going_on(data, place, max_iter=2, resume=False)
    files = sorted(file for file in place.rglob("*") if file.is_file())
    assert len(files) >= 7
    for seed, file in enumerate(files * 3):
        content = bytearray(file.read_bytes())
        content[int(np.random.default_rng(seed).integers(len(content)))] ^= 1 << seed % 8
        before = file.read_bytes()
        file.write_bytes(content)
        with pytest.raises(ModelFileError):
            going_on(data, place)
        file.write_bytes(before)
    whole = going_on(data, tmp_path / "other", resume=False)
    np.testing.assert_array_equal(going_on(data, place).row_factors_, whole.row_factors_)


def test_checkpoints_without_digests_are_told_of_and_checked(data: Any, tmp_path: Path) -> None:
    place = tmp_path / "states"
    going_on(data, place, max_iter=2, resume=False)
    manifest = json.loads((place / "checkpoint.json").read_text())
    for name in ("files", "sha256"):
        del manifest[name]
    (place / "checkpoint.json").write_text(json.dumps(manifest))
    with pytest.warns(DataWarning, match="before checkpoints had digests"):
        going_on(data, place, max_iter=3)
    going_on(data, place, max_iter=2, resume=False)
    (place / "checkpoint.json").write_text(json.dumps(manifest))
    block = place / "sweep-00002" / "row-0.npy"
    array = np.load(block)
    for forged in (array[1:], array.astype(int), np.full_like(array, np.nan)):
        np.save(block, forged)
        with pytest.raises(ModelFileError, match="row-0"), pytest.warns(DataWarning):
            going_on(data, place)
    content = block.read_bytes()
    block.write_bytes(content.replace(b"(%d, 3)" % len(array), b"(99999999999, 3)")[: len(content)])
    with pytest.raises(ModelFileError, match="row-0"), pytest.warns(DataWarning):
        going_on(data, place)
    manifest["folder"] = "../../elsewhere"
    (place / "checkpoint.json").write_text(json.dumps(manifest))
    with pytest.raises(ModelFileError, match="no readable checkpoint"):
        going_on(data, place)


@pytest.mark.parametrize(
    ("name", "key", "value"),
    [
        ("DirtyIMC", "0.row_map.mean", np.zeros((1, zoo.D))),
        ("DirtyIMC", "0.row_map.scale", np.array(1.0)),
        ("DirtyIMC", "0.core", np.zeros(3)),
    ],
)
def test_parts_of_a_state_have_their_dimensions(tmp_path: Path, name: str, key: str, value: Any) -> None:
    model = copy.deepcopy(zoo.fitted(name))
    assert key in model.state_
    model.state_[key] = value
    with pytest.raises(ModelFileError):
        model.save(tmp_path / "m")
