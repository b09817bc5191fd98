"""Loaders of matrices: ratings and drug responses."""

from __future__ import annotations

import numpy as np
from scipy import sparse

from unseen.data import Observations, Vocabulary
from unseen.data.streaming import PathLike
from unseen.datasets.bunches import MatrixData
from unseen.datasets.registry import FILES, find_files
from unseen.datasets.tables import make_cells, multi_hot, one_hot, read_columns, read_lines, read_numbers
from unseen.docstrings import described_by

__all__ = [
    "load_ciao",
    "load_filmtrust",
    "load_ml100k",
    "load_nci_dream",
    "load_yelp2013",
    "load_yelp_3zones",
]


@described_by(FILES)
def load_ml100k(*, data_home: PathLike | None = None, download: bool = False) -> MatrixData:
    """MovieLens 100K: 943 users, 1,682 movies, 100,000 ratings from 1 to 5.

    Parameters
    ----------
    download : bool, default=False
        Fetch what is missing from GroupLens, who do not allow redistribution or commercial use.

    Returns
    -------
    MatrixData
        24 user features (age, two flags for gender, 21 occupations), 20 movie features (19 genres,
        year of release; the one unknown year is the mean). `cells` holds ``fold`` (1..5, the
        published five folds), ``ua_test``, ``ub_test`` (published tests of ten ratings a user) and
        ``timestamp``, which is the time of the cells too; `extras` holds the ``titles``.
    """
    files = find_files("ml100k", data_home=data_home, download=download)
    ratings = read_numbers(files["u.data"], "\t", header=False)
    splits = {name: column.astype(np.int64) for name, column in read_numbers(files["splits.csv"]).items()}
    _, age, gender, occupation, _ = read_columns(files["u.user"], "|")
    _, titles, released, _, _, *genres = read_columns(files["u.item"], "|", "latin-1")
    occupations = read_lines(files["u.occupation"])
    year = np.array([float(date[-4:]) if date else np.nan for date in released])
    year[np.isnan(year)] = np.nanmean(year)
    seen, about = make_cells(
        ratings["0"] - 1,
        ratings["1"] - 1,
        ratings["2"],
        (len(age), len(titles)),
        repeated="mean",
        timestamp=ratings["3"].astype(np.int64),
        **splits,
    )
    users = np.column_stack(
        [np.array(age, dtype=np.float64), one_hot(gender, ["F", "M"]), one_hot(occupation, occupations)]
    )
    return MatrixData(
        seen.with_ids(
            Vocabulary(np.arange(1, len(age) + 1)), Vocabulary(np.arange(1, len(titles) + 1))
        ).with_times(about["timestamp"].astype("datetime64[s]")),
        row_features=users,
        col_features=np.column_stack([np.array(genres, dtype=np.float64).T, year]),
        row_feature_names=["age", "gender=F", "gender=M", *(f"occupation={name}" for name in occupations)],
        col_feature_names=[line.split("|")[0] for line in read_lines(files["u.genre"])] + ["year"],
        cells=about,
        extras={"titles": list(titles)},
    )


@described_by(FILES)
def load_yelp2013(*, data_home: PathLike | None = None, download: bool = False) -> MatrixData:
    """Yelp 2013 (Phoenix): 45,981 users, 11,537 businesses, 229,906 star ratings.

    Returns
    -------
    MatrixData
        Features of businesses: latitude, longitude, city and categories (sparse). `cells` holds
        ``order``, the place of each rating by date. The one pair that was rated twice has the mean,
        and the later place.
    """
    files = find_files("yelp2013", data_home=data_home, download=download)
    table = read_numbers(files["ratings.csv"])
    header_and_rows = read_columns(files["items.csv"])
    items = {column[0]: column[1:] for column in header_and_rows}
    seen, about = make_cells(
        table["user"],
        table["item"],
        table["stars"],
        (int(table["user"].max()) + 1, len(items["item"])),
        repeated="mean",
        order=np.arange(table["user"].size),
    )
    places = np.array([items["latitude"], items["longitude"]], dtype=np.float64).T
    cities, city_names = multi_hot(items["city"])
    kinds, kind_names = multi_hot(items["categories"])
    features = sparse.hstack([sparse.csr_array(places), cities, kinds], format="csr")
    return MatrixData(
        seen,
        col_features=sparse.csr_array(features),
        col_feature_names=[
            "latitude",
            "longitude",
            *(f"city={name}" for name in city_names),
            *(f"category={name}" for name in kind_names),
        ],
        cells=about,
    )


@described_by(FILES)
def load_yelp_3zones(*, data_home: PathLike | None = None, download: bool = False) -> MatrixData:
    """Three separate parts of Yelp 2013: 8,272 users, 5,842 businesses, nearly block-diagonal.

    Returns
    -------
    MatrixData
        `cells` holds ``order`` (by date), ``item_zone`` and ``user_zone`` (0..2; ratings where they
        differ connect the zones); `extras` the zone and the Yelp 2013 number of each user and item.
    """
    files = find_files("yelp_3zones", data_home=data_home, download=download)
    table = read_numbers(files["ratings.csv"])
    users, items = read_numbers(files["user_map.csv"]), read_numbers(files["item_map.csv"])
    seen, about = make_cells(
        table["user"],
        table["item"],
        table["stars"],
        (users["user"].size, items["item"].size),
        repeated="mean",
        order=np.arange(table["user"].size),
        item_zone=table["item_zone"].astype(np.int64),
        user_zone=table["user_zone"].astype(np.int64),
    )
    extras = {
        "user_zone": users["home_zone"].astype(np.int64),
        "item_zone": items["zone"].astype(np.int64),
        "yelp2013_user": users["yelp2013_user"].astype(np.int64),
        "yelp2013_item": items["yelp2013_item"].astype(np.int64),
    }
    return MatrixData(seen, cells=about, extras=extras)


@described_by(FILES)
def load_filmtrust(*, data_home: PathLike | None = None, download: bool = False) -> MatrixData:
    """FilmTrust: 1,508 users, 2,071 movies, 35,494 ratings from 0.5 to 4, and who trusts whom.

    Returns
    -------
    MatrixData
        `extras` holds ``trust``, a directed 0/1 matrix over 1,642 users, of whom the first 1,508 have
        ratings. Three pairs that were rated twice have the mean.
    """
    files = find_files("filmtrust", data_home=data_home, download=download)
    table, trust = read_numbers(files["ratings.csv"]), read_numbers(files["trust.csv"])
    shape = (int(table["user"].max()) + 1, int(table["item"].max()) + 1)
    seen, _ = make_cells(table["user"], table["item"], table["rating"], shape, repeated="mean")
    ends = [trust[name].astype(np.int64) for name in ("user", "trusted_user")]
    size = max(shape[0], int(max(end.max() for end in ends)) + 1)
    network = sparse.csr_array((np.ones(ends[0].size), (ends[0], ends[1])), shape=(size, size))
    network.sum_duplicates()
    network.data[:] = 1
    return MatrixData(seen, extras={"trust": network})


@described_by(FILES)
def load_ciao(*, data_home: PathLike | None = None, download: bool = False) -> MatrixData:
    """Ciao: 2,248 users, 16,861 products of six categories, 35,835 ratings from 1 to 5.

    Returns
    -------
    MatrixData
        Features of products: their categories as six flags (three products were rated under two).
        `cells` holds ``category``, ``helpfulness`` and ``unix_time``. Of 230 ratings that repeat a pair,
        the latest counts.
    """
    files = find_files("ciao", data_home=data_home, download=download)
    table = read_numbers(files["ratings.csv"])
    by_time = np.argsort(table["unix_time"], kind="stable")
    table = {name: column[by_time] for name, column in table.items()}
    shape = (int(table["user"].max()) + 1, int(table["item"].max()) + 1)
    about = {name: table[name].astype(np.int64) for name in ("category", "helpfulness", "unix_time")}
    seen, about = make_cells(table["user"], table["item"], table["rating"], shape, repeated="last", **about)
    names = [f"category={number}" for number in range(int(table["category"].max()) + 1)]
    flags = np.zeros((shape[1], len(names)))
    flags[table["item"].astype(np.int64), table["category"].astype(np.int64)] = 1
    return MatrixData(seen, col_features=flags, col_feature_names=names, cells=about)


@described_by(FILES)
def load_nci_dream(
    *, data_home: PathLike | None = None, download: bool = False, profiled_only: bool = True
) -> MatrixData:
    """NCI-DREAM: sensitivity of breast-cancer cell lines to 31 drugs, -log10(GI50).

    Parameters
    ----------
    profiled_only : bool, default=True
        Keep the 44 cell lines with gene calls; otherwise all 53, without features.

    Returns
    -------
    MatrixData
        Features of cell lines: 36,953 calls (1 = gene detected). Row ids are the cell lines, column
        ids the drugs. `extras` holds ``is_test_row``, the challenge's test lines. One value of Drug24
        that can only be an error (19.50, all others are near 2.7) is cut to the next largest.
    """
    files = find_files("nci_dream", data_home=data_home, download=download)
    columns = read_columns(files["drug_response.csv"])
    lines, sets = columns[0][1:], np.array(columns[1][1:])
    drugs = [column[0] for column in columns[2:]]
    response = np.array([[float(v) if v else np.nan for v in column[1:]] for column in columns[2:]]).T
    outlier = drugs.index("Drug24")
    wrong = response[:, outlier] > 10
    response[wrong, outlier] = np.nanmax(response[~wrong, outlier])
    genes, _, *calls = read_columns(files["rnaseq_calls.csv"])
    profiled = {column[0]: column[1:] for column in calls}
    keep = (
        np.array([line in profiled for line in lines]) if profiled_only else np.ones(len(lines), dtype=bool)
    )
    kept = [line for line, wanted in zip(lines, keep, strict=True) if wanted]
    seen = Observations.from_dense(response[keep]).with_ids(Vocabulary(kept), Vocabulary(drugs))
    return MatrixData(
        seen,
        row_features=np.array([profiled[line] for line in kept], dtype=np.float64) if profiled_only else None,
        row_feature_names=list(genes[1:]) if profiled_only else [],
        extras={"is_test_row": sets[keep] == "test"},
    )
