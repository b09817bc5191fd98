"""This library and others, each in an environment of its own with nothing but what it needs."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import venv
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent
FOLDER = Path(__file__).parent / "environments"
REQUIREMENTS = {
    "unseen": ["--editable", str(ROOT)],
    "implicit": ["implicit==0.7.3"],
    "irspack": ["irspack==0.5.2"],
    "torch": ["torch==2.13.0+cpu", "numpy"],
    "cmfrec": ["cmfrec==3.5.1.post14", "threadpoolctl"],
    "pyspark": ["pyspark==3.5.6", "numpy<2", "setuptools"],
    "sklearn": ["scikit-learn==1.9.1"],
    "omikuji": ["omikuji==0.5.2"],
    "cornac": ["cornac==3.0.1", "flask"],
    "myfm": ["myfm==0.4.0"],
    "smurff": ["smurff==1.1", "scipy"],
    "napkinxc": ["napkinxc==0.7.2"],
}


def python_of(name: str) -> str:
    """Interpreter of the environment that has the library, made at the first use."""
    folder = FOLDER / name
    python = folder / "bin" / "python"
    ready = folder / ".ready"
    wanted = native_digest() if name == "unseen" else ""
    if not ready.exists() or ready.read_text() != wanted:
        venv.create(folder, with_pip=True)
        settings = [f"--config-settings=build-dir={folder / 'build'}"] if name == "unseen" else []
        subprocess.run(
            [python, "-m", "pip", "install", "--quiet", *settings, *REQUIREMENTS[name]], check=True
        )
        ready.write_text(wanted)
    return str(python)


def native_digest() -> str:
    """Changes with whatever an editable install of this library is built from."""
    files = [ROOT / "pyproject.toml", ROOT / "CMakeLists.txt", *sorted((ROOT / "cpp").rglob("*.*pp"))]
    return hashlib.sha256(b"".join(file.read_bytes() for file in files)).hexdigest()


def run_child(name: str, script: Path, request: dict[str, Any], *, n_threads: int) -> dict[str, Any]:
    """Run a script in a library's environment; it reads a JSON request and prints a JSON answer last."""
    threads = {key: str(n_threads) for key in ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS")}
    environment = {**os.environ, **threads, "OPENBLAS_NUM_THREADS": "1"}
    done = subprocess.run(
        [python_of(name), str(script), json.dumps(request)],
        check=False,
        capture_output=True,
        text=True,
        env=environment,
        cwd=Path(__file__).parent.parent,
    )
    if done.returncode:
        raise RuntimeError(f"{name} failed:\n{done.stderr[-2000:]}")
    answer: dict[str, Any] = json.loads(done.stdout.strip().splitlines()[-1])
    return answer
