"""A result as HTML: the card that a notebook shows, and the page that the command writes too."""

from __future__ import annotations

import base64
import html
import json
import math
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import numpy as np

from steinflow import _steinflow

if TYPE_CHECKING:
    from steinflow._result import Result

MOST_ROWS = 20
MOST_POINTS, MOST_STEPS, MOST_COLUMNS = 2000, 1000, 120
"""What a page shows of a run; the rest is thinned evenly."""


def html_of(result: Result) -> str:
    columns = result.columns(draws=True)
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
    data = base64.b64encode(figure._repr_png_()).decode()
    return f'<img alt="particles" src="data:image/png;base64,{data}"/>'


def page(result: Result, name: str | None) -> str:
    """The page as text."""
    frame = result.columns(draws=True)
    kind = "particles" if result._draws is None else "samples"
    count, chosen = len(next(iter(frame.values()))), list(frame)[:MOST_COLUMNS]
    points, steps = _evenly(count, MOST_POINTS), _evenly(len(result.trace["step"]), MOST_STEPS)
    notes = []
    if len(points) < count:
        notes.append(f"{len(points)} of {count} {kind} are shown, evenly spaced")
    if len(chosen) < len(frame):
        notes.append(f"the first {len(chosen)} of {len(frame)} coordinates are shown")
    trace = {key: np.asarray(column)[steps] for key, column in result.trace.items()}
    axes = ("step", "gradients", "seconds")
    course = [
        (key, column.tolist())
        for key, column in trace.items()
        if key not in (*axes, "ksd") and np.isfinite(column).any()
    ]
    ksd = [
        (int(step), int(gradients), float(value))
        for step, gradients, value in zip(
            trace["step"], trace["gradients"], trace["ksd"], strict=True
        )
        if np.isfinite(value)
    ]
    diagnosis = result.diagnosis
    return _steinflow.report_page(
        {
            "name": name or f"{result.method} on {result._run.target.name}",
            "config": result.config,
            "summary": _json(_summary(result, frame, kind)),
            "diagnosis": None if diagnosis is None else _json(asdict(diagnosis)),
            "notes": notes,
            "kind": kind,
            "count": count,
            "dim": len(frame),
            "names": chosen,
            "columns": [np.asarray(frame[key], float)[points].tolist() for key in chosen],
            "rows": len(result.trace["step"]),
            **{key: trace[key].tolist() for key in axes},
            "course": course,
            "ksd": ksd,
        },
        _on_model(result),
    )


def _on_model(result: Result) -> tuple[Any, ...] | None:
    """For what the command says of a model that ships: the model, and draws of all chains in turn."""
    model = result._run.target.built_in
    if model is None:
        return None
    draws = result.theta[None] if result._draws is None else result._draws
    _, chains, dim = draws.shape
    return model, result._run.config, np.asarray(draws.reshape(-1, dim), float), chains


def _summary(result: Result, frame: dict[str, np.ndarray], kind: str) -> dict[str, Any]:
    """What the command writes to `summary.json`."""
    numbers = result.diagnostics
    moments = [
        {"name": name, "mean": float(np.mean(x)), "sd": float(np.std(x))}
        for name, x in frame.items()
    ]
    found = {
        "steinflow_version": _steinflow.__version__,
        "model": result._run.target.name,
        "method": result.method,
        "particles": numbers["particles"],
        "samples": len(next(iter(frame.values()))) if kind == "samples" else None,
        "steps": result.steps,
        "ended": result.ended,
        "gradients": numbers["gradients"],
        "seconds": numbers["seconds"],
        "mean_log_density": numbers["mean_log_density"],
        "moments": moments,
        "ensemble": result.ensemble,
        "warm_up": result._outcome.get("warm_up"),
        "frozen_particles": numbers["frozen"],
        "step_size_halvings": numbers["shrinks"],
    }
    return {key: value for key, value in found.items() if value is not None}


def _evenly(count: int, most: int) -> np.ndarray:
    return np.linspace(0, count - 1, min(count, most)).astype(int)


def _json(value: Any) -> str:
    def plain(part: Any) -> Any:
        if isinstance(part, dict):
            return {key: plain(child) for key, child in part.items()}
        if isinstance(part, (list, tuple)):
            return [plain(child) for child in part]
        # JSON has no other numbers.
        return None if isinstance(part, float) and not math.isfinite(part) else part

    return json.dumps(plain(value))
