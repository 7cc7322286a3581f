"""How a notebook shows a result: a table of the parameters and a picture of the particles."""

from __future__ import annotations

import base64
import html
import io
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from steinflow._result import Result

MOST_ROWS = 20


def html_of(result: Result) -> str:
    columns = result.columns()
    rows = [
        f"<tr><td>{html.escape(name)}</td><td>{np.mean(x):.4g}</td><td>{np.std(x):.4g}</td>"
        + "".join(f"<td>{q:.4g}</td>" for q in np.quantile(x, [0.05, 0.5, 0.95]))
        + "</tr>"
        for name, x in list(columns.items())[:MOST_ROWS]
    ]
    more = len(columns) - MOST_ROWS
    note = f"<p>and {more} more parameters</p>" if more > 0 else ""
    heading = html.escape(repr(result).strip("<>"))
    head = "".join(f"<th>{name}</th>" for name in ("", "mean", "sd", "5 %", "median", "95 %"))
    table = f"<table><thead><tr>{head}</tr></thead><tbody>{''.join(rows)}</tbody></table>"
    verdict = ""
    if result.diagnosis is not None:
        advice = "".join(f"<br/>→ {html.escape(one)}" for one in result.diagnosis.advice)
        verdict = f"<p>{html.escape(result.diagnosis.line)}{advice}</p>"
    return f"<div><p><b>{heading}</b></p>{verdict}{_picture(result)}{table}{note}</div>"


def _picture(result: Result) -> str:
    try:
        figure = result.plot_particles()
    except ImportError as error:
        return f"<p>{html.escape(str(error))}</p>"
    buffer = io.BytesIO()
    figure.savefig(buffer, format="png", dpi=80)
    data = base64.b64encode(buffer.getvalue()).decode()
    return f'<img alt="particles" src="data:image/png;base64,{data}"/>'
