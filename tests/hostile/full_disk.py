"""Save to a disk that is too small for a second model, in a process of its own."""

import sys
from pathlib import Path

from tests.hostile import saving
from unseen.exceptions import ModelFileError

place = Path(sys.argv[1]) / "m"
saving.ROWS = 20_000
saving.stamped(1.0).save(place)
filler = Path(sys.argv[1]) / "filler"
with filler.open("wb", buffering=0) as file:
    try:
        while True:
            file.write(b"x" * 4096)
    except OSError:
        pass
try:
    saving.stamped(2.0).save(place)
except ModelFileError as error:
    print("refused", error.errno if isinstance(error, OSError) else type(error))
print("old" if saving.stamp_of(place) == 1.0 and not saving.debris(place) else "lost")
filler.unlink()
saving.ROWS = 5_000
saving.stamped(2.0).save(place)
print("saved")
print("new" if saving.stamp_of(place) == 2.0 and not saving.debris(place) else "lost")
