"""Other libraries, each in an environment of its own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import venv
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parent / "environments"
REQUIREMENTS = {
    "implicit": ["implicit==0.7.3"],
    "irspack": ["irspack==0.5.2"],
    "cmfrec": ["cmfrec==3.5.1.post14", "threadpoolctl"],
}


def python_of(name: str) -> str:
    """Interpreter of the environment that has the library, made at the first use."""
    if name == "unseen":
        return sys.executable
    folder = FOLDER / name
    python = folder / "bin" / "python"
    if not (folder / ".ready").exists():
        venv.create(folder, with_pip=True)
        subprocess.run([python, "-m", "pip", "install", "--quiet", *REQUIREMENTS[name]], check=True)
        (folder / ".ready").touch()
    return str(python)


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
