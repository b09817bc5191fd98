"""cmfrec on rows that were held out whole, in its own process and environment; see mixed_cold.py.

Rows have a role: 0 to learn from, 1 to choose by, 2 to predict. The values of rows with role 2 are
not in the file.
"""

import json
import sys

import numpy as np
import pandas as pd
from cmfrec import CMF, ContentBased

request = json.loads(sys.argv[1])
with np.load(request["data"]) as file:
    rows, cols, values = file["rows"], file["cols"], file["values"]
    U, items, role = file["row_features"], file["col_features"], file["role"]
common = {"nthreads": request["n_threads"], "random_state": 1, "verbose": False}


def make(setting):
    if request["model"] == "CMF":
        return CMF(k=setting["k"], lambda_=setting["reg"], w_user=setting["weight"], w_item=setting["weight"],
                   use_cg=False, **common)  # fmt: skip
    return ContentBased(k=setting["k"], lambda_=setting["reg"], maxiter=300, **common)


def predicted(setting, known, wanted):
    """Fit to the rows of some roles, predict the cells of those of another from features alone."""
    seen = np.isin(role[rows], known)
    asked = role[rows] == wanted
    frame = pd.DataFrame({"UserId": rows[seen], "ItemId": cols[seen], "Rating": values[seen]})
    ids = np.flatnonzero(np.isin(role, known))
    U_table = pd.DataFrame(U[ids]).rename(columns=str)
    U_table.insert(0, "UserId", ids)
    I_table = pd.DataFrame(items).rename(columns=str)
    I_table.insert(0, "ItemId", np.arange(len(items)))
    model = make(setting).fit(frame, U=U_table, I=I_table)
    if request["model"] == "CMF":
        # A column without cells is unknown to the model; it gets the mean.
        have = np.isin(cols[asked], frame["ItemId"].unique())
        out = np.full(asked.sum(), values[seen].mean())
        out[have] = model.predict_cold_multiple(cols[asked][have], U[rows[asked][have]])
        return out
    return np.asarray(model.predict_new(U=U[rows[asked]], I=items[cols[asked]]))


def error(setting):
    truth = values[role[rows] == 1]
    return float(np.sqrt(np.mean((predicted(setting, [0], 1) - truth) ** 2)))


tried = [(error(setting), setting) for setting in request["settings"]]
validation, best = min(tried, key=lambda pair: pair[0])
np.save(request["out"], predicted(best, [0, 1], 2))
print(json.dumps({"validation": validation, "setting": best}))
